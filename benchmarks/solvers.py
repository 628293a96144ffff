"""Our solvers beside POT's, in one process, on real cost matrices where there are any.

    python benchmarks/solvers.py [--quick] [-o results.json]

Real ones are cosine distances between the words of WMT15 pairs under GloVe vectors, looked for in
$FREIGHT_DATA (by default ../shared); clustered random ones stand in where they are absent. Times
are processor time of one thread, ours and POT's in turns, the best of several of each; two threads
against one are the wall's time of all batches, the best of many.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread means one for the peers too

import argparse
import gzip
import json
import re
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ot
from rich.console import Console
from rich.table import Table

import freight
from freight import Problem
from freight.transport.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
Triple = tuple[Array, Array, Array]
LAZY = ((0.23, 0.31), (0.009, 0.95), (0.018, 0.97))


@dataclass
class Row:
    """One line of the table."""

    what: str
    problems: int
    ours: float
    theirs: float
    ratio: float
    two_threads: float
    error: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the problems")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("benchmarks/results/solvers.json")
    )
    arguments = parser.parse_args()
    share = 10 if arguments.quick else 1
    warnings.simplefilter("ignore")
    source, costs = cost_matrices()
    rng = np.random.default_rng(0)
    rng.shuffle(costs)
    costs = costs[: 2000 // share]
    rows = exact(costs) + lazy(costs, 200 // share) + relaxed(costs, 40 // share)
    rows += barycenters(rng, 100 // share)
    grown = growth(rng)
    failures, count = stress(12_000 // share)
    show(source, rows, grown, failures, count)
    report = {
        "source": source,
        "rows": [asdict(row) for row in rows],
        "growth": grown,
        "stress": {"problems": count, "failures": failures},
        "bytes per problem over 8nm": memory(),
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1))
    print(f"written to {arguments.output}")


def cost_matrices() -> tuple[str, list[Array]]:
    """Cosine distances between the words of real pairs, or between clustered random points."""
    pairs, vectors = DATA / "data/wmt15-da.jsonl.gz", DATA / "vectors/glove.100d.60k.bin"
    if not (pairs.exists() and vectors.exists()):
        rng = np.random.default_rng(1)
        lengths = np.clip(rng.lognormal(3.0, 0.6, (2000, 2)), 3, 100).astype(int)
        return "clustered random points", [clustered(n, m, rng) for n, m in lengths]
    table = word_vectors(vectors)
    costs = []
    with gzip.open(pairs, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            sides = [row["hyp"], row["refs"][0]]
            words = [
                [w for w in re.findall(r"\w+|[^\w\s]", s.lower()) if w in table] for s in sides
            ]
            if row["lang_pair"].endswith("-en") and all(words):
                hyp, ref = (unit(np.array([table[w] for w in side])) for side in words)
                costs.append(np.clip(1.0 - hyp @ ref.T, 0.0, 2.0))
    return "words of WMT15 pairs, GloVe 100d", costs


def word_vectors(path: Path) -> dict[str, Array]:
    data = path.read_bytes()
    start = data.index(b"\n") + 1
    count, dim = map(int, data[:start].split())
    table = {}
    for _ in range(count):
        space = data.index(b" ", start)
        word = data[start:space].decode("utf-8", "replace").strip()
        table[word] = np.frombuffer(data, np.float32, dim, space + 1).astype(np.float64)
        start = space + 1 + 4 * dim
    return table


def unit(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def clustered(n: int, m: int, rng: np.random.Generator) -> Array:
    centres = rng.normal(size=(max(3, n // 5), 50))
    sides = [centres[rng.integers(len(centres), size=k)] for k in (n, m)]
    hyp, ref = (unit(x + 0.5 * rng.normal(size=x.shape)) for x in sides)
    return np.clip(1.0 - hyp @ ref.T, 0.0, 2.0)


MASSES: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "uniform": lambda k, rng: np.full(k, 1 / k),
    "exponential": lambda k, rng: rng.dirichlet(np.ones(k)),
    "softmax": lambda k, rng: (lambda x: x / x.sum())(np.exp(rng.normal(size=k))),
}


def weigh(costs: list[Array], mass: str) -> list[Triple]:
    rng, draw = np.random.default_rng(2), MASSES[mass]
    return [(c, draw(c.shape[0], rng), draw(c.shape[1], rng)) for c in costs]


def batches(problems: list[Triple], size: int = 256) -> list[tuple[list[int], tuple[Any, ...]]]:
    """Padded batches of problems of like size, as a pipeline would cut them."""
    order = sorted(range(len(problems)), key=lambda k: problems[k][0].shape)
    result = []
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        n = np.array([problems[k][0].shape[0] for k in chosen])
        m = np.array([problems[k][0].shape[1] for k in chosen])
        cost = np.zeros((len(chosen), n.max(), m.max()))
        hyp, ref = np.zeros(cost.shape[:2]), np.zeros((len(chosen), m.max()))
        for row, k in enumerate(chosen):
            cost[row, : n[row], : m[row]] = problems[k][0]
            hyp[row, : n[row]], ref[row, : m[row]] = problems[k][1:]
        result.append((chosen, (cost, hyp, ref, n, m)))
    return result


def fastest(calls: Sequence[Callable[[], Any]], repeats: int = 5) -> list[float]:
    """The least processor time of each call; they take turns."""
    times = [[seconds(call, time.process_time) for call in calls] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def seconds(call: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    call()
    return clock() - start


def gain_of_two(call: Callable[[], Any], patience: float = 2.0) -> float:
    """One thread's time by the wall over that of two, in turns, the best of many short calls.

    Where other processes want the cores too, a few calls still have both for themselves.
    """
    times: dict[int, list[float]] = {1: [], 2: []}
    until = time.perf_counter() + patience
    while len(times[2]) < 5 or time.perf_counter() < until:
        for threads, known in times.items():
            freight.set_threads(threads)
            known.append(seconds(call, time.perf_counter))
    freight.set_threads(1)
    return min(times[1]) / min(times[2])


def compare(
    what: str,
    problem: Problem,
    problems: list[Triple],
    peer: Callable[[Array, Array, Array], float],
    read: str,
    few: int | None = None,
) -> Row:
    """Time ours on all problems and the peer on the first few; the worst difference on those."""
    packed = batches(problems)
    freight.set_threads(1)
    plans = [freight.solve(problem, *data) for _, data in packed]
    values = np.empty(len(problems))
    for (chosen, _), solved in zip(packed, plans, strict=True):
        values[chosen] = getattr(solved, read)

    def ours() -> None:
        for _, data in packed:
            freight.solve(problem, *data)

    sample = problems[:few]
    expected = np.array([peer(*triple) for triple in sample])
    repeats = 5 if few is None else 3  # a peer that is slow is slow enough to time
    whole, theirs = fastest((ours, lambda: [peer(*triple) for triple in sample]), repeats)
    mine, theirs = whole / len(problems), theirs / len(sample)
    error = float(np.abs(values[: len(sample)] - expected).max())
    rates = 1 / mine, 1 / theirs
    return Row(what, len(problems), *rates, theirs / mine, gain_of_two(ours), error)


def exact(costs: list[Array]) -> list[Row]:
    def peer(cost: Array, hyp: Array, ref: Array) -> float:
        return float(ot.emd2(hyp, ref, cost))

    return [
        compare(
            f"exact, hard marginals, {mass} mass", Problem(), weigh(costs, mass), peer, "transport"
        )
        for mass in MASSES
    ]


def lazy(costs: list[Array], few: int) -> list[Row]:
    rows = []
    for penalties in LAZY:

        def peer(cost: Array, hyp: Array, ref: Array, pair: Any = penalties) -> float:
            plan = ot.unbalanced.sinkhorn_unbalanced(
                hyp, ref, cost, 0.009, pair, method="sinkhorn", reg_type="entropy",
                numItermax=100_000, stopThr=1e-9,
            )  # fmt: skip
            return float((plan * cost).sum())

        name = f"entropic, KL-relaxed {penalties}"
        problems = weigh(costs, "exponential")
        rows.append(compare(name, Problem(*penalties, 0.009), problems, peer, "transport", few))
    return rows


def relaxed(costs: list[Array], few: int) -> list[Row]:
    def peer(cost: Array, hyp: Array, ref: Array) -> float:
        plan = ot.unbalanced.mm_unbalanced(
            hyp, ref, cost, (0.23, 0.31), div="kl", numItermax=20_000, stopThr=1e-12
        )
        penalties = (
            p * (s[s > 0] * np.log(s[s > 0] / w[s > 0])).sum() + p * (w - s).sum()
            for p, s, w in ((0.23, plan.sum(1), hyp), (0.31, plan.sum(0), ref))
        )
        return float((plan * cost).sum() + sum(penalties))

    problems = weigh(costs, "exponential")
    name = "exact, KL-relaxed (0.23, 0.31)"
    return [compare(name, Problem(0.23, 0.31), problems, peer, "objective", few)]


def barycenters(rng: np.random.Generator, texts: int) -> list[Row]:
    """Layers of an encoder's width, uniform and unequal mass, from the same start."""
    rows = []
    for mass in ("uniform", "exponential"):
        layers, weights, sizes = [], [], rng.integers(8, 40, texts)
        for size in sizes:
            drift = [rng.normal(size=(size, 384))]
            for _ in range(4):
                drift.append(0.9 * drift[-1] + 0.4 * rng.normal(size=(size, 384)))
            layers.append(unit(np.stack(drift)))
            weights.append(MASSES[mass](int(size), rng))
        rows.append(barycenter_row(mass, layers, weights, sizes))
    return rows


def barycenter_row(mass: str, layers: list[Array], weights: list[Array], sizes: Array) -> Row:
    points = np.zeros((len(layers), 5, sizes.max(), 384))
    masses = np.zeros((len(layers), sizes.max()))
    for k, size in enumerate(sizes):
        points[k, :, :size], masses[k, :size] = layers[k], weights[k]

    def peer(stack: Array, weight: Array) -> Array:
        start = stack.mean(axis=0)
        return np.asarray(
            ot.lp.free_support_barycenter(
                list(stack), [weight] * 5, start, stopThr=1e-14, numItermax=1000
            )
        )

    def value(cloud: Array, stack: Array, weight: Array) -> float:
        even = np.full(len(cloud), 1 / len(cloud))
        return float(np.mean([ot.emd2(even, weight, ot.dist(cloud, layer)) for layer in stack]))

    freight.set_threads(1)
    solved = freight.barycenter(points, masses, sizes)
    pairs = list(zip(layers, weights, strict=True))
    clouds = [peer(*pair) for pair in pairs]
    ours = partial(freight.barycenter, points, masses, sizes)
    mine, theirs = (
        whole / len(layers) for whole in fastest((ours, lambda: [peer(*pair) for pair in pairs]), 3)
    )
    worse = max(
        float(solved.objective[k]) - value(cloud, layers[k], weights[k])
        for k, cloud in enumerate(clouds)
    )
    name = f"barycenter, {mass} mass (error: objective over POT's)"
    return Row(name, len(layers), 1 / mine, 1 / theirs, theirs / mine, gain_of_two(ours), worse)


def exact_costs(triples: list[Triple]) -> Array:
    return np.array([ot.emd2(hyp, ref, cost, numItermax=10**7) for cost, hyp, ref in triples])


def growth(rng: np.random.Generator) -> list[dict[str, float]]:
    """Exact and lazy at growing sizes, against POT's exact."""
    rows = []
    for n in (10, 25, 50, 100, 300, 512):
        count = max(4, 300_000 // n**2)
        triples = [(clustered(n, n, rng), *rng.dirichlet(np.ones(n), 2)) for _ in range(count)]
        data = [np.stack(x) for x in zip(*triples, strict=True)]
        exact_call = partial(freight.solve, Problem(), *data)
        lazy_call = partial(freight.solve, Problem(0.23, 0.31, 0.009), *data)
        peer = partial(exact_costs, triples)
        exact_time, lazy_time, theirs = (
            whole / count for whole in fastest((exact_call, lazy_call, peer), 7)
        )
        error = np.abs(exact_call().transport - peer()).max()
        rows.append(
            {
                "n": n,
                "emd2 us": theirs * 1e6,
                "exact us": exact_time * 1e6,
                "ratio": theirs / exact_time,
                "lazy us": lazy_time * 1e6,
                "error": float(error),
            }
        )
    return rows


def stress(count: int) -> tuple[int, int]:
    """Count the difficult problems, of all penalties and epsilons, that fail to reach their gap."""
    rng = np.random.default_rng(3)
    kinds: list[Callable[[int, int], Array]] = [
        lambda n, m: clustered(n, m, rng),
        lambda n, m: np.full((n, m), rng.uniform(0, 2)),
        lambda n, m: np.zeros((n, m)),
        lambda n, m: rng.uniform(0, 2, (n, m)),
        lambda n, m: 2.0 * rng.integers(0, 2, (n, m)),
    ]
    failures = done = 0
    while done < count:
        for hyp, ref in (*LAZY, (1, 1), (5, 5), (50, 50)):
            for epsilon in (0.002, 0.009, 0.1):
                triples = []
                for _ in range(64):
                    n, m = rng.integers(1, 45, 2)
                    mass = [10.0 ** rng.uniform(-10, 0, k) for k in (n, m)]
                    cost = kinds[rng.integers(len(kinds))](n, m)
                    triples.append((cost, mass[0] / mass[0].sum(), mass[1] / mass[1].sum()))
                for _, data in batches(triples, 64):
                    plans = freight.solve(Problem(hyp, ref, epsilon), *data, strict=False)
                    bad = ~plans.converged | ~(plans.gap <= 1e-9 * (1 + abs(plans.regularised)))
                    bad[0] |= disagrees(plans, data)
                    failures += int(bad.sum())
                done += len(triples)
    return failures, done


def disagrees(plans: freight.Plans, data: tuple[Array, ...]) -> bool:
    """Whether the first plan of a batch is off POT's, where POT gets to an answer in time."""
    n, m = data[3][0], data[4][0]
    cost, hyp, ref = data[0][0, :n, :m], data[1][0, :n], data[2][0, :m]
    penalties = plans.problem.hyp, plans.problem.ref
    plan, log = ot.unbalanced.sinkhorn_unbalanced(
        hyp, ref, cost, plans.problem.epsilon, penalties, method="sinkhorn", reg_type="entropy",
        numItermax=20_000, stopThr=1e-12, log=True,
    )  # fmt: skip
    arrived = np.isfinite(plan).all() and plan.sum() > 0 and min(log["err"], default=1) <= 1e-12
    return bool(arrived and abs((plan * cost).sum() - plans.transport[0]) > 1e-7)


def memory() -> float:
    """The peak of what solving allocates, in units of 8nm bytes per problem."""
    rng = np.random.default_rng(4)
    pairs, n = 2000, 40
    cost = rng.uniform(0, 2, (pairs, n, n))
    hyp, ref = rng.dirichlet(np.ones(n), (2, pairs))
    freight.solve(Problem(0.23, 0.31, 0.009), cost[:2], hyp[:2], ref[:2])
    tracemalloc.start()
    freight.solve(Problem(0.23, 0.31, 0.009), cost, hyp, ref)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (8 * n * n * pairs)


def show(
    source: str, rows: list[Row], grown: list[dict[str, float]], failures: int, count: int
) -> None:
    console = Console(width=130)
    table = Table(title=f"Beside POT {ot.__version__}, one thread, on {source}")
    for name in ("", "problems", "ours / s", "POT / s", "ratio", "two threads", "worst error"):
        table.add_column(name, justify="left" if not name else "right")
    for row in rows:
        table.add_row(
            row.what,
            str(row.problems),
            f"{row.ours:,.0f}",
            f"{row.theirs:,.1f}",
            f"[bold]{row.ratio:.1f}x",
            f"{row.two_threads:.2f}x",
            f"{row.error:.1e}",
        )
    console.print(table)
    table = Table(title="Growth (clustered, exponential mass)")
    for name in grown[0]:
        table.add_column(name, justify="right")
    for line in grown:
        table.add_row(*(f"{x:.1e}" if k == "error" else f"{x:,.1f}" for k, x in line.items()))
    console.print(table)
    console.print(f"stress: {failures} failures in {count} problems")
    console.print(f"memory beside the caller's: {memory():.2f} x 8nm bytes per problem")


if __name__ == "__main__":
    main()
