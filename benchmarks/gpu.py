"""Pairs a second of every transport metric on a GPU, beside the encoder's own limit.

    python benchmarks/gpu.py [--pairs 160000] [--dtype bfloat16] [--metric NAME ...]

Needs no network: an encoder of BERT-base's shape with random weights and a vocabulary are made on
the spot; texts have the lengths of news sentences, about 26 tokens, and none is repeated. Prints,
for each metric, pairs a second, the same over what the encoder alone does for the same layers in
plain length-sorted batches, and how the time would be shared out if each stage waited for the last.
bert-score is weigh where it is installed.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
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
    "yisi-1": ("yisi-1", {}),
    "f-alpha": ("f-alpha", {}),
    "wrd-score": ("wrd-score", {}),
    "mover-score": ("mover-score", {}),
    "freight": ("freight", {}),
    "bary-score": ("bary-score", {}),
    "bary-score, IDF": ("bary-score", {"idf": "ref"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=160000)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--metric", action="append", choices=METRICS)
    arguments = parser.parse_args()
    if arguments.threads:
        freight.set_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        make_encoder(Path(folder), arguments.layers, arguments.hidden)
        encoder: Any = freight.encoder(folder, dtype=arguments.dtype, device=arguments.device)
        dtype = getattr(torch, arguments.dtype)
        library: Any = transformers
        model = library.AutoModel.from_pretrained(folder, dtype=dtype).to(arguments.device).eval()
        texts = sentences(2 * arguments.pairs)
        hyps, refs = texts[::2], texts[1::2]
        tokens = encoder._tokenizer([*hyps, *refs])
        print(f"{encoder.identity.partition('/')[2]}, {len(hyps):,} pairs")
        for name in arguments.metric or METRICS:
            kind, settings = METRICS[name]
            metric = freight.load(kind, encoder=encoder, **settings)
            measure(name, metric, partial(plain, model, tokens), hyps, refs, arguments.rounds)
        if find_spec("bert_score"):
            layer = 2 * arguments.layers // 3
            peer(folder, layer, hyps[:8192], refs[:8192], arguments.device)


def measure(
    name: str,
    metric: PipelineScorer,
    encode: Callable[[Sequence[int], int], None],
    hyps: Sequence[str],
    refs: Sequence[str],
    rounds: int,
) -> None:
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
    shares = ", ".join(f"{stage} {share:.0%}" for stage, share in split(part, segments).items())
    print(
        f"{name:16} {max(ours):9,.0f} pairs/s, encoder alone {max(alone):9,.0f}:"
        f" {max(ours) / max(alone):.2f} ({shares}), {1e8 / max(ours) / 3600:.1f} GPU-hours for 1e8",
        flush=True,
    )


def split(metric: Metric, segments: Sequence[Segment], most: int = 32768) -> dict[str, float]:
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
        priced = compute_costs(metric, *sides, chunk.index)
        priced = replace(priced, batches=list(priced.batches))
        spent["costs"] += clock.lap()
        read_scores(metric, priced)
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


def plain(model: Any, tokens: Tokens, layers: Sequence[int], texts: int, rows: int = 512) -> None:
    """The encoder alone, up to the highest layer: sorted by length, padded, nothing kept."""
    device = model.device
    sizes = np.diff(tokens.offsets)[:texts]
    order = np.argsort(-sizes, kind="stable")
    for start in range(0, len(order), rows):
        several = order[start : start + rows]
        inside = np.arange(sizes[several[0]]) < sizes[several, None]
        place = np.where(inside, tokens.offsets[several, None] + np.arange(inside.shape[1]), 0)
        ids, mask = (torch.as_tensor(x, device=device) for x in (tokens.ids[place], inside))
        hidden_states(model, {"input_ids": ids, "attention_mask": mask.long()}, layers)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peer(folder: str, layer: int, hyps: Sequence[str], refs: Sequence[str], device: str) -> None:
    """The bert-score package on the same texts."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=folder, num_layers=layer, batch_size=512, device=device)
    for half in (False, True):
        if half:
            scorer._model = scorer._model.half()
        scorer.score(list(hyps[:512]), list(refs[:512]))
        started = time.perf_counter()
        scorer.score(list(hyps), list(refs))
        rate = len(hyps) / (time.perf_counter() - started)
        print(f"bert-score's package, float{16 if half else 32}: {rate:,.0f} pairs/s")


def sentences(count: int, seed: int = 0) -> list[str]:
    """Distinct texts; lengths as in news: a median of 22 words, from 3 to 80."""
    random = np.random.default_rng(seed)
    words = np.array([f"w{k}" for k in range(6000)])
    lengths = np.clip(np.exp(random.normal(np.log(22), 0.45, count)).astype(int), 3, 80)
    ends = np.cumsum(lengths)
    drawn = words[random.zipf(1.3, ends[-1]) % len(words)]
    return [
        " ".join(drawn[end - length : end]) + f" {k % 6000}"
        for k, (end, length) in enumerate(zip(ends, lengths, strict=True))
    ]


def make_encoder(folder: Path, layers: int, hidden: int) -> None:
    """BERT with random weights, and a vocabulary of the words above."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    names = [*special, *(f"w{k}" for k in range(6000)), *(str(k) for k in range(6000))]
    vocabulary = {name: k for k, name in enumerate(names)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    marks = dict(zip(("pad", "unk", "cls", "sep", "mask"), special, strict=True))
    library: Any = transformers
    named = {f"{name}_token": mark for name, mark in marks.items()}
    kept = library.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=512, **named
    )
    kept.save_pretrained(folder)
    torch.manual_seed(0)
    config = library.BertConfig(
        vocab_size=30522,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // 64),
        intermediate_size=4 * hidden,
    )
    library.BertModel(config).save_pretrained(folder)


if __name__ == "__main__":
    main()
