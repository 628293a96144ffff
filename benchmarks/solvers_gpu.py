"""KL-relaxed problems on a GPU: time to the tolerance, and how far the CPU's answer is."""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

import freight


def problems(
    pairs: int, size: int, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Cosine costs between clustered unit vectors, with masses of unequal size."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(pairs, size // 3, 48))
    sides = []
    for _ in range(2):
        pick = rng.integers(centres.shape[1], size=(pairs, size))
        points = np.take_along_axis(centres, pick[..., None], axis=1)
        points = points + 0.5 * rng.normal(size=points.shape)
        sides.append(points / np.linalg.norm(points, axis=-1, keepdims=True))
    cost = 1.0 - sides[0] @ sides[1].swapaxes(-1, -2)
    masses = (rng.dirichlet(np.ones(size), pairs) for _ in range(2))
    return torch.tensor(cost), *(torch.tensor(mass) for mass in masses)  # type: ignore[return-value]


def milliseconds(call: Callable[[], object], repeats: int = 10) -> float:
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=16384)
    parser.add_argument("--size", type=int, default=32)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"{arguments.pairs} problems of {arguments.size}x{arguments.size}, tolerance 1e-6")
    data = problems(arguments.pairs, arguments.size)
    for hyp, ref in ((0.23, 0.31), (0.009, 0.95), (1.0, 1.0), (np.inf, np.inf)):
        problem = freight.Problem(hyp, ref, 0.009)
        on_cpu = freight.solve(problem, *(x.numpy() for x in data), tolerance=1e-9)
        for dtype in (torch.float32, torch.float64):
            on_gpu = [x.to("cuda", dtype) for x in data]
            plans = freight.solve(problem, *on_gpu, tolerance=1e-6)
            time = milliseconds(partial(freight.solve, problem, *on_gpu, tolerance=1e-6))
            got = plans.transport.double().cpu().numpy()
            print(
                f"({hyp}, {ref}) {str(dtype)[6:]}: {time:.1f} ms, "
                f"finite {bool(torch.isfinite(plans.flow).all())}, "
                f"transport off the CPU's by at most {abs(got - on_cpu.transport).max():.1e}, "
                f"flow by {abs(plans.flow.double().cpu().numpy() - on_cpu.flow).max():.1e}, "
                f"largest gap {float(plans.gap.max()):.1e}"
            )


if __name__ == "__main__":
    main()
