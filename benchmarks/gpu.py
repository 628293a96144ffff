"""Pairs a second of every transport metric on a GPU, beside what the encoder alone can do.

    python benchmarks/gpu.py [--shape base] [--tokens 27] [--metric NAME ...] [-o results.json]

Texts are real: the outputs and references of WMT18 where the judgement sets are at hand
($FREIGHT_DATA), else the sentences of the examples and of the library, rearranged; longer texts are
neighbouring sentences joined. The vocabulary is that of the embedded encoder; the weights are
random, of BERT-base's or MiniLM's shape. For each metric: pairs a second from text to score, the
same for the encoder alone (the same layers, tokenized before, in plain length-sorted batches), and
the share of each stage when every stage waits for the one before. The bert-score package is
measured in the same run where it is installed.
"""

import argparse
import gzip
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import freight
from freight.core.metric import Metric
from freight.core.pipeline import (
    chunks,
    compute_costs,
    encode_chunk,
    read_scores,
    score_stream,
    weigh,
)
from freight.core.scorers import PipelineScorer
from freight.core.types import Segment, device_of
from freight.encoders.tokenizer import Tokens
from freight.encoders.transformer import hidden_states

METRICS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert-score": ("bert-score", {}),
    "emd": ("emd", {}),
    "lazy-emd": ("lazy-emd", {}),
    "f-alpha": ("f-alpha", {}),
    "yisi-1": ("yisi-1", {}),
    "freight": ("freight", {}),
    "wrd-score": ("wrd-score", {}),
    "mover-score": ("mover-score", {}),
    "bary-score": ("bary-score", {}),
    "bary-score, IDF": ("bary-score", {"idf": "ref"}),
}
SHAPES = {"base": (12, 768), "minilm": (6, 384)}
"""Layers and dimensions; a head has 64, or 32 in MiniLM."""
PAIRS = {27: 100_000, 150: 20_000, 400: 6_000}
"""By tokens a text, how many pairs are scored."""
EXAMPLES = Path(__file__).parent.parent / "examples"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--tokens", action="append", type=int, choices=PAIRS)
    parser.add_argument("--metric", action="append", choices=METRICS)
    parser.add_argument("--pairs", type=int, help="at most so many")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokenizer", help="a folder; default: the embedded encoder's")
    parser.add_argument("-o", "--output", type=Path, help="results as JSON")
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    for shape in arguments.shape or SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            make_encoder(Path(folder), *SHAPES[shape], arguments.tokenizer)
            for tokens in arguments.tokens or PAIRS:
                several = measure_all(folder, shape, tokens, arguments)
                for row in several:
                    results.append(row)
                    if arguments.output:
                        arguments.output.write_text(json.dumps(results, indent=1) + "\n")


def measure_all(folder: str, shape: str, tokens: int, arguments: Any) -> Iterator[dict[str, Any]]:
    """The rows of one shape and one length: every metric, and the bert-score package."""
    device, dtype = arguments.device, getattr(torch, arguments.dtype)
    pairs = text_pairs(tokens, min(PAIRS[tokens], arguments.pairs or 10**9))
    encoder: Any = freight.encoder(folder, dtype=arguments.dtype, device=device)
    library: Any = transformers
    model = library.AutoModel.from_pretrained(folder, dtype=dtype).to(device).eval()
    tokenized = encoder._tokenizer([text for pair in pairs for text in pair])
    fitting = np.diff(tokenized.offsets).reshape(-1, 2).max(axis=1) <= 512
    pairs = [pair for pair, fits in zip(pairs, fitting, strict=True) if fits]
    hyps, refs = [hyp for hyp, _ in pairs], [ref for _, ref in pairs]
    tokenized = encoder._tokenizer([text for pair in pairs for text in pair])
    mean = len(tokenized.ids) / len(tokenized.texts)
    about = {"shape": shape, "tokens": round(mean, 1), "pairs": len(pairs)}
    print(f"{shape}, {arguments.dtype}, {len(pairs):,} pairs, {mean:.1f} tokens a text", flush=True)
    for name in arguments.metric or METRICS:
        kind, settings = METRICS[name]
        metric = freight.load(kind, encoder=encoder, **settings)
        row = measure(metric, partial(plain, model, tokenized), hyps, refs, arguments.rounds)
        shares = ", ".join(f"{stage} {share:.0%}" for stage, share in row["shares"].items())
        ratio = row["pairs_per_second"] / row["encoder_alone"]
        print(
            f"{name:16} {row['pairs_per_second']:9,.0f} pairs/s, encoder alone"
            f" {row['encoder_alone']:9,.0f}: {ratio:.2f} ({shares})",
            flush=True,
        )
        yield {**about, "metric": name, **row}
    if find_spec("bert_score"):
        layer = 2 * SHAPES[shape][0] // 3
        for precision, rate in peer(folder, layer, hyps[:4096], refs[:4096], device).items():
            print(f"bert-score's package, {precision}: {rate:,.0f} pairs/s", flush=True)
            yield {**about, "metric": f"bert-score package, {precision}", "pairs_per_second": rate}


def measure(
    metric: PipelineScorer,
    encode: Callable[[Sequence[int], int], None],
    hyps: Sequence[str],
    refs: Sequence[str],
    rounds: int,
) -> dict[str, Any]:
    """One metric and its encoder, in turns, the best of each; the first turn warms up."""
    if metric.needs_fitting:
        metric = metric.fit(refs, hyps)
    (part,) = metric.parts
    alone, ours = [], []
    for turn in range(rounds + 1):
        count = len(hyps) if turn else len(hyps) // 4
        segments = [(hyp, (ref,)) for hyp, ref in zip(hyps[:count], refs[:count], strict=True)]
        started = time.perf_counter()
        encode(part.layers, 2 * count)
        middle = time.perf_counter()
        done = sum(len(result) for (result,) in score_stream([metric], segments))
        ended = time.perf_counter()
        if turn:
            alone.append(count / (middle - started))
            ours.append(done / (ended - middle))
    shares = split(part, segments)
    return {"pairs_per_second": max(ours), "encoder_alone": max(alone), "shares": shares}


def split(metric: Metric, segments: Sequence[Segment], most: int = 16384) -> dict[str, float]:
    """The share of each stage of the work when they are done one after the other."""
    encoder: Any = metric.encoder
    spent: dict[str, float] = dict.fromkeys(("tokens", "encoder", "measures", "costs", "plans"), 0)
    clock = _Clock(device_of(encoder))
    for chunk in chunks(segments[:most], growth=8):
        prepared = {encoder: encoder.prepare(chunk.texts)}
        spent["tokens"] += clock.lap()
        (encoded,) = encode_chunk([metric], chunk, prepared)
        spent["encoder"] += clock.lap()
        ((_, cloud),) = encoded.clouds([metric])
        sides = weigh(metric, cloud)
        spent["measures"] += clock.lap()
        costs = compute_costs(metric, *sides, chunk.index)
        costs = replace(costs, batches=list(costs.batches))
        spent["costs"] += clock.lap()
        read_scores(metric, costs)
        spent["plans"] += clock.lap()
    return {stage: seconds / sum(spent.values()) for stage, seconds in spent.items()}


class _Clock:
    """Laps that wait for the GPU."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.lap()

    def lap(self) -> float:
        """Seconds since the last."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        last, self._last = getattr(self, "_last", 0.0), time.perf_counter()
        return self._last - last


def plain(model: Any, tokens: Tokens, layers: Sequence[int], texts: int, rows: int = 16384) -> None:
    """The encoder alone, up to the highest layer: sorted by length, padded, nothing kept."""
    device = model.device
    sizes = np.diff(tokens.offsets)[:texts]
    order = np.argsort(-sizes, kind="stable")
    start = 0
    while start < len(order):
        several = order[start : start + max(1, rows // int(sizes[order[start]]))]
        start += len(several)
        inside = np.arange(sizes[several[0]]) < sizes[several, None]
        place = np.where(inside, tokens.offsets[several, None] + np.arange(inside.shape[1]), 0)
        ids, mask = (torch.as_tensor(x, device=device) for x in (tokens.ids[place], inside))
        hidden_states(model, {"input_ids": ids, "attention_mask": mask.long()}, layers)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peer(
    folder: str, layer: int, hyps: Sequence[str], refs: Sequence[str], device: str
) -> dict[str, float]:
    """Pairs a second of the bert-score package on the same texts, by precision."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=folder, num_layers=layer, batch_size=512, device=device)
    rates = {}
    for precision in ("float32", "float16"):
        if precision == "float16":
            scorer._model = scorer._model.half()
        scorer.score(list(hyps[:512]), list(refs[:512]))
        started = time.perf_counter()
        scorer.score(list(hyps), list(refs))
        rates[precision] = len(hyps) / (time.perf_counter() - started)
    return rates


def text_pairs(tokens: int, count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of texts of about so many tokens, in an order in which few texts repeat nearby."""
    sentences = list(_sentence_pairs())
    joined = max(1, round(tokens / 27))
    random.Random(seed).shuffle(sentences)
    groups = [sentences[k : k + joined] for k in range(0, len(sentences) - joined + 1, joined)]
    while len(groups) < count:  # other neighbours
        random.Random(len(groups)).shuffle(sentences)
        groups += [sentences[k : k + joined] for k in range(0, len(sentences) - joined + 1, joined)]
    return [(" ".join(h for h, _ in group), " ".join(r for _, r in group)) for group in groups][
        :count
    ]


def _sentence_pairs() -> Iterator[tuple[str, str]]:
    """Outputs and references of WMT18, or what can be made of the bundled sentences."""
    folder = Path(os.environ.get("FREIGHT_DATA", "../shared")) / "data"
    files = sorted(folder.glob("wmt18-da.*-en.jsonl.gz"))
    seen = set()
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                pair = row["hyp"], row["refs"][0]
                if pair not in seen:
                    seen.add(pair)
                    yield pair
    if not files:
        from freight.core.weightings import sentences

        texts = [*sentences(), *(EXAMPLES / "ref.txt").read_text("utf-8").splitlines()]
        yield from ((hyp, ref) for hyp in texts for ref in texts)


def make_encoder(folder: Path, layers: int, hidden: int, tokenizer: str | None) -> None:
    """BERT of a shape with random weights, and the vocabulary of the embedded encoder."""
    from freight.encoders.transformer import embedded_folder

    library: Any = transformers
    kept = library.AutoTokenizer.from_pretrained(tokenizer or embedded_folder())
    kept.save_pretrained(folder)
    torch.manual_seed(0)
    config = library.BertConfig(
        vocab_size=len(kept),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=4 * hidden,
    )
    library.BertModel(config).save_pretrained(folder)


if __name__ == "__main__":
    main()
