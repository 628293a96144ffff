"""Pairs a second of every transport metric on a GPU, beside what the encoder alone can do.

    python benchmarks/gpu.py [--shape base] [--tokens 27] [--metric NAME ...] [-o results.json]

Texts are real: the outputs and references of WMT18 where the judgement sets are at hand
($FREIGHT_DATA), else the sentences of the examples and of the library, rearranged; longer texts are
neighbouring sentences joined. The vocabulary is that of the embedded encoder; the weights are
random, of BERT-base's or MiniLM's shape. For each metric: pairs a second from text to score, and
the same for the encoder alone (the same layers, tokenized before, in plain length-sorted batches
through `transformers`); with --shares also the share of each stage when every stage waits for the
one before. The bert-score package, and the solvers of POT, geomloss and flash-sinkhorn on a problem
that all of them solve, are measured in the same run where they are installed.
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
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor

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
PAIRS = {27: 70_000, 150: 11_700, 400: 4_600}
"""By tokens a text, how many pairs are scored: as many as WMT18 has without one twice."""
PEER_TOKENS = 2**16
"""How many tokens a side the bert-score package is given."""
FEWER = {27: 1, 150: 20, 400: 40}
"""Barycenters of long texts take long: so many times fewer pairs show how long."""
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
    parser.add_argument("--shares", action="store_true", help="the share of each stage too")
    parser.add_argument("--no-peers", action="store_true", help="none of the other packages")
    parser.add_argument("--tokenizer", help="a folder; default: the embedded encoder's")
    parser.add_argument("-o", "--output", type=Path, help="results as JSON")
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    for row in measure_everything(arguments):
        results.append(row)
        print(describe(row), flush=True)
        if arguments.output:
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")


def measure_everything(arguments: Any) -> Iterator[dict[str, Any]]:
    """The rows of every shape and length, and of the solvers."""
    for shape in arguments.shape or SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            make_encoder(Path(folder), *SHAPES[shape], arguments.tokenizer)
            for tokens in arguments.tokens or PAIRS:
                yield from measure_all(folder, shape, tokens, arguments)
    if not arguments.no_peers:
        yield from measure_solvers(arguments.device)


def describe(row: dict[str, Any]) -> str:
    """A row of the table as a line."""
    if "solver" in row:
        size, time = row["size"], row.get("milliseconds")
        taken = f"{time:.1f} ms (from {row['solved']})" if time else row["refused"]
        return f"{row['pairs']} problems of {size} x {size}: {row['solver']}: {taken}"
    line = f"{row['shape']:6} {row['tokens']:5} {row['metric']:28} {row['pairs_per_second']:9,.0f}"
    if "encoder_alone" in row:
        line += f" pairs/s, encoder alone {row['encoder_alone']:9,.0f}: {row['share']:.2f}"
    shares = row.get("shares", {}).items()
    return line + "".join(f", {stage} {share:.0%}" for stage, share in shares)


def measure_all(folder: str, shape: str, tokens: int, arguments: Any) -> Iterator[dict[str, Any]]:
    """The rows of one shape and one length: every metric, and the bert-score package."""
    device, dtype = arguments.device, getattr(torch, arguments.dtype)
    pairs = text_pairs(tokens, min(PAIRS[tokens], arguments.pairs or 10**9))
    encoder: Any = freight.encoder(folder, dtype=arguments.dtype, device=device)
    tokenized = encoder._tokenizer([text for pair in pairs for text in pair])
    fitting = np.diff(tokenized.offsets).reshape(-1, 2).max(axis=1) <= 512
    pairs = [pair for pair, fits in zip(pairs, fitting, strict=True) if fits]
    hyps, refs = [hyp for hyp, _ in pairs], [ref for _, ref in pairs]
    tokenized = encoder._tokenizer([text for pair in pairs for text in pair])
    mean = len(tokenized.ids) / len(tokenized.texts)
    about = {"shape": shape, "tokens": round(mean, 1), "pairs": len(pairs)}
    alone: dict[int, float] = {}
    for name in arguments.metric or METRICS:
        kind, settings = METRICS[name]
        metric = freight.load(kind, encoder=encoder, **settings)
        if metric.needs_fitting:
            metric = metric.fit(refs, hyps)
        (part,) = metric.parts
        top = max(part.layers)
        if top not in alone:
            model = first_layers(folder, top, dtype).to(device)
            plain(model, tokenized, [top], 2 * len(pairs))  # its first pass is slow
            alone[top] = best_rate(
                partial(plain, model, tokenized, [top], 2 * len(pairs)), len(pairs), arguments
            )
        fewer = FEWER[tokens] if kind == "bary-score" else 1
        segments = [(hyp, (ref,)) for hyp, ref in pairs[: len(pairs) // fewer]]
        score(metric, segments[: len(segments) // 2])
        rate = best_rate(partial(score, metric, segments), len(segments), arguments)
        row: dict[str, Any] = {**about, "metric": name, "layers": top, "pairs_per_second": rate}
        row |= {"encoder_alone": alone[top], "share": rate / alone[top]}
        yield row | ({"shares": split(part, segments)} if arguments.shares else {})
    if find_spec("bert_score") and not arguments.no_peers:
        layer = 2 * SHAPES[shape][0] // 3
        count = PEER_TOKENS // tokens
        for precision, rate in peer(folder, layer, hyps[:count], refs[:count], device).items():
            yield {**about, "metric": f"bert-score package, {precision}", "pairs_per_second": rate}


def first_layers(folder: str, count: int, dtype: torch.dtype) -> Any:
    """The model with no more layers than these, so that nothing has to stop it."""
    library: Any = transformers
    return library.AutoModel.from_pretrained(folder, num_hidden_layers=count, dtype=dtype).eval()


def best_rate(work: Callable[[], None], count: int, arguments: Any) -> float:
    """How many a second, in the best of some rounds."""
    rates = []
    for _ in range(arguments.rounds):
        started = time.perf_counter()
        work()
        rates.append(count / (time.perf_counter() - started))
    return max(rates)


def score(metric: PipelineScorer, segments: Sequence[Segment]) -> None:
    """From texts to scores, of which none is kept."""
    for (result,) in score_stream([metric], segments):
        assert np.isfinite(result[result.columns[0].name]).any()


def measure_solvers(device: str) -> Iterator[dict[str, Any]]:
    """Milliseconds for a batch of balanced entropic problems between unit vectors."""
    for pairs, size in ((4096, 32), (512, 160)):
        torch.manual_seed(0)
        hyp, ref = (
            torch.nn.functional.normalize(torch.randn(pairs, size, 64, device=device), dim=-1)
            for _ in range(2)
        )
        for solver, prepare in SOLVERS.items():
            row = {"pairs": pairs, "size": size, "solver": solver}
            count = min(pairs, ONE_AFTER_ANOTHER.get(solver, pairs))
            try:
                solve = prepare(hyp[:count], ref[:count])
                solve()
                torch.cuda.synchronize()
                started = time.perf_counter()
                solve()
                torch.cuda.synchronize()
                taken = 1e3 * (time.perf_counter() - started) * pairs / count
                yield row | {"milliseconds": taken, "solved": count}
            except Exception as error:  # each package refuses in its own way
                yield row | {"refused": f"{type(error).__name__}: {error}"[:200]}


EPSILON = 0.05
ONE_AFTER_ANOTHER = {"flash-sinkhorn": 64}
"""A batch is a loop there, so that the time of so many problems tells that of all."""


def _ours(problem: freight.Problem, hyp: Tensor, ref: Tensor) -> Callable[[], Any]:
    mass = torch.full(hyp.shape[:2], 1.0 / hyp.shape[1], device=hyp.device).double()
    cost = (1.0 - hyp @ ref.mT).double()
    return lambda: freight.solve(problem, cost, mass, mass, strict=False)


def _pot(hyp: Tensor, ref: Tensor) -> Callable[[], Any]:
    from ot.batch import solve_batch

    mass = torch.full(hyp.shape[:2], 1.0 / hyp.shape[1], device=hyp.device).double()
    cost = (1.0 - hyp @ ref.mT).double()
    return lambda: solve_batch(cost, EPSILON, mass, mass, tol=1e-9, grad="detach")


def _geomloss(hyp: Tensor, ref: Tensor) -> Callable[[], Any]:
    loss = import_module("geomloss").SamplesLoss(
        "sinkhorn", p=2, blur=EPSILON**0.5, scaling=0.9, debias=False
    )
    return lambda: loss(hyp, ref)


def _flash(hyp: Tensor, ref: Tensor) -> Callable[[], Any]:
    loss = import_module("flash_sinkhorn").SamplesLoss(
        "sinkhorn", blur=EPSILON**0.5, scaling=0.9, half_cost=True, debias=False
    )
    return lambda: loss(hyp, ref)


SOLVERS: dict[str, Callable[[Tensor, Tensor], Callable[[], Any]]] = {
    "freight, balanced": partial(_ours, freight.Problem(epsilon=EPSILON)),
    "POT, ot.batch": _pot,
    "geomloss": _geomloss,
    "flash-sinkhorn": _flash,
    "freight, KL-relaxed (0.23, 0.31), epsilon 0.009": partial(
        _ours, freight.Problem(0.23, 0.31, 0.009)
    ),
}
"""Half the squared distance of unit vectors is 1 - their cosine, so that all have the same costs.

geomloss and flash-sinkhorn do a number of steps that `scaling` sets; the others stop at a tolerance
of 1e-9.
"""


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
    from freight.encoders import packaged_folder

    library: Any = transformers
    kept = library.AutoTokenizer.from_pretrained(tokenizer or packaged_folder("embedded"))
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
