"""The README's picture: where the words of one sentence went in another, under Lazy-EMD."""

from __future__ import annotations

from html import escape

import freight
from figures_lazy import FAR, HYP, MUTED, NEAR, REF, _panel
from freight.report.formatting import number

WIDTH, HEIGHT = 470, 330


def flow() -> str:
    """One diagram with a key below it."""
    explanation = freight.load("lazy-emd").explain(HYP, REF)
    [view] = explanation.views
    title = f"lazy-emd: {explanation.column.name} = {number(explanation.score, 2)}"
    left, right = ("rgb({}, {}, {})".format(*colour) for colour in (NEAR, FAR))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" role="img"'
        f' aria-label="{escape(HYP)} transported to {escape(REF)}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>'
        f'<g transform="translate(40 34)">{_panel(title, view, view.plans[0])}</g>'
        f'<defs><linearGradient id="key"><stop stop-color="{left}"/>'
        f'<stop offset="1" stop-color="{right}"/></linearGradient></defs>'
        f'<g transform="translate(40 276)" fill="{MUTED}" font-size="12">'
        '<text y="10">Hypothesis above, reference below. A ribbon is as wide as its mass;</text>'
        '<text y="28">a hollow bar is unmatched mass. Cost: low</text>'
        '<rect x="262" y="19" width="80" height="9" fill="url(#key)" fill-opacity=".7"/>'
        '<text x="350" y="28">high</text></g></svg>\n'
    )
