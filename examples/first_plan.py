"""A small transport problem, solved and drawn in the terminal."""

import numpy as np
from rich.console import Console
from rich.table import Table

import freight

HYP = ["the", "man", "wears", "a", "coat"]
REF = ["the", "young", "man", "in", "a", "slicker"]
# Made-up costs between words, 0 for the same word; a metric computes them from an encoder.
COST = np.array(
    [
        [0.0, 0.9, 0.8, 0.6, 0.3, 0.9],
        [0.8, 0.5, 0.0, 0.9, 0.8, 0.7],
        [0.8, 0.9, 0.7, 0.4, 0.8, 0.5],
        [0.3, 0.9, 0.8, 0.6, 0.0, 0.9],
        [0.9, 0.8, 0.7, 0.7, 0.9, 0.2],
    ]
)
SHADES = " ░▒▓█"


def draw(title: str, problem: freight.Problem) -> Table:
    """One plan as a table: a shade for each flow, and the unmatched mass of both sides."""
    hyp, ref = np.full(len(HYP), 1 / len(HYP)), np.full(len(REF), 1 / len(REF))
    plan = freight.solve(problem, COST, hyp, ref)
    flow = np.asarray(plan.flow)
    numbers = f"transport {plan.transport:.3f}, objective {plan.objective:.3f}"
    table = Table(title=f"{title}\n{numbers}", title_justify="left", title_style="bold")
    table.add_column("")
    for word in REF:
        table.add_column(word, justify="center")
    table.add_column("added", justify="right", style="yellow")
    for word, row, mass in zip(HYP, flow, hyp, strict=True):
        table.add_row(word, *(_cell(x) for x in row), _unmatched(mass - row.sum()))
    rest = ref - flow.sum(axis=0)
    table.add_section()
    table.add_row("omitted", *(_unmatched(x) for x in rest), "", style="yellow")
    return table


def _cell(mass: float) -> str:
    if mass < 5e-4:
        return ""
    return SHADES[min(int(mass * 20) + 1, 4)] * 2 + f" {mass:.2f}"


def _unmatched(mass: float) -> str:
    return f"{mass:.2f}" if mass > 5e-3 else ""


def main() -> None:
    """Draw the plan between the same two sentences with hard and with relaxed marginals."""
    console = Console()
    console.print(draw("Earth mover's distance: all mass moves", freight.Problem()))
    lazy = freight.Problem(hyp=0.23, ref=0.31, epsilon=0.009)
    console.print(draw("Lazy-EMD: mass that is expensive to move stays unmatched", lazy))


if __name__ == "__main__":
    main()
