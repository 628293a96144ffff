"""Parts of speech in the cost of Lazy-EMD, against people: a table of Markdown.

    pip install HanTa
    python benchmarks/studies/parts_of_speech.py [--rows 100] [--threads 1] [--resamples 300]

The Hanover Tagger brings a model of English along, so that nothing is fetched; here it is the one
part of a pipeline of spaCy's. Rows are those of `future_work.py`.
"""

from __future__ import annotations

import tempfile
from functools import cache
from typing import Any

import spacy
from spacy.language import Language

import freight
from freight.core.sweep_cache import SharedEncodings, SweepCache
from future_work import asked, sampled, table

PARTS = {
    "AJ": "ADJ", "AT": "DET", "AV": "ADV", "CJC": "CCONJ", "CJ": "SCONJ", "CRD": "NUM",
    "DPS": "PRON", "DT": "DET", "EX": "PRON", "IN": "ADP", "ITJ": "INTJ", "NN": "NOUN",
    "NP": "PROPN", "ORD": "ADJ", "PN": "PRON", "POS": "PART", "PR": "ADP", "PU": "PUNCT",
    "TO": "PART", "VB": "AUX", "VD": "AUX", "VH": "AUX", "VM": "AUX", "VV": "VERB", "XX": "PART",
}  # fmt: skip
SHARES = (0.05, 0.1, 0.2, 0.4)


def main() -> None:
    arguments = asked(__doc__)
    judged = sampled(arguments.rows, arguments.seed)
    memories = SharedEncodings()
    rehearsal = SweepCache(zip(judged.hyps, judged.refs, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        pipeline = spacy.blank("en")
        pipeline.add_pipe("parts_of_speech")
        pipeline.to_disk(folder)
        entered: dict[str, dict[str, Any]] = {"no tags": {}}
        entered |= {f"{share:g}": {"tags": folder, "tag_share": share} for share in SHARES}
        for column in ("transport", "objective"):
            scores = {
                name: -rehearsal.score(
                    memories.wrap(freight.load("lazy-emd", column=column, **settings))
                )[column]
                for name, settings in entered.items()
            }
            print(f"## {column}\n\n{table(judged, scores, arguments.resamples)}", flush=True)


@Language.component("parts_of_speech")
def parts_of_speech(text: Any) -> Any:
    """What the tagger says of each word, as universal parts of speech."""
    words = [word for word in text if not word.is_space]
    tagged = _tagger().tag_sent([word.text for word in words]) if words else []
    for word, (_, _, tag) in zip(words, tagged, strict=True):
        known = (PARTS[tag[:k]] for k in (3, 2) if tag[:k] in PARTS)
        word.pos_ = next(known, "X")
    return text


@cache
def _tagger() -> Any:
    from HanTa.HanoverTagger import HanoverTagger

    return HanoverTagger("morphmodel_en.pgz")


if __name__ == "__main__":
    main()
