"""Tables of metrics and of their parameters, made from the metrics' declarations."""

import freight
from freight.metrics import find_metric
from freight.metrics.declaration import Direction, Parameter

LEXICAL = "lexical"
"""The page that all metrics of other libraries share."""


def metrics() -> str:
    """The README's table: a row per metric, one row for those of other libraries."""
    lines = ["| metric | columns, the primary one first | what it is |", "| --- | --- | --- |"]
    lexical = []
    for name in freight.list_metrics():
        metric = find_metric(name)
        if metric.page == LEXICAL:
            lexical.append(name)
        else:
            lines.append(f"| `{name}` | {columns(name)} | {_cell(metric.summary)} |")
    named = " ".join(f"`{name}`" for name in lexical)
    extra = "`pip install 'freight[lexical]'`"
    lines.append(f"| {named} | score | string metrics, through their libraries ({extra}) |")
    return "\n".join(lines)


def index() -> str:
    """The table of the pages of metrics: columns, what each is, and when to choose it."""
    lines = [
        "| metric | columns, the primary one first | what it is | choose it when |",
        "| --- | --- | --- | --- |",
    ]
    for name in freight.list_metrics():
        metric = find_metric(name)
        when = metric.choose_when or "you need figures that others report, or a baseline"
        link = f"[{name}]({metric.page}.md)"
        lines.append(f"| {link} | {columns(name)} | {_cell(metric.summary)} | {when} |")
    return "\n".join(lines)


def parameters(*names: str) -> str:
    """What can be set of one metric, or of several that take the same."""
    lines = ["| parameter | default | values | what it does |", "| --- | --- | --- | --- |"]
    for name in names:
        owner = f" (`{name}`)" if len(names) > 1 else ""
        for one in find_metric(name).parameters.values():
            row = f"{_default(one)} | {_cell(one.expect())} | {_cell(one.description)} |"
            lines.append(f"| `{one.name}`{owner} | {row}")
    return "\n".join(lines)


def columns(name: str) -> str:
    """The columns of a metric with arrows: up where higher is better."""
    declared: dict[str, Direction] = dict(find_metric(name).columns or {})
    return " ".join(f"{column}{direction.value}" for column, direction in declared.items())


def _default(parameter: Parameter) -> str:
    if parameter.automatic != parameter.default:
        return f"`{parameter.automatic}`, by language"
    return f"`{parameter.default}`"


def _cell(text: str) -> str:
    return text.removesuffix(".").replace("|", "\\|")
