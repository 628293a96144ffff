"""The page of a study, as a file and in a real browser."""

import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from freight.errors import InvalidInput, MissingPart
from freight.judge.study import Study
from freight.report import judge as judge_page
from freight.report.judge import write_judge_report
from freight.transport.types import Array
from pages import Elements, OpenPage, some_ways
from studies import NOISE, preferred, rated, study

HOSTILE = (
    '</td></style></script><script>document.title="owned"</script>'
    '<img src=x onerror="alert(1)">&lt;'
)
DRAWING = {"svg", "g", "defs", "path", "use", "text", "image", "clippath", "rect"}


def page_of(made: Study, folder: Path) -> str:
    write_judge_report(made, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def studies() -> dict[str, Study]:
    one = rated("realsumm", 40, 6, ("recall",))
    whole = replace(one, human={}, system_human={"recall": np.arange(6.0)})
    return {
        "sets": study(*(rated(f"wmt {p}", 40, 3, ("da",)) for p in ("cs-en", "de-en"))),
        "criteria": study(rated("webnlg", 40, 4, ("fluency", "relevance"))),
        "preferences": study(preferred("darr et-en", 60, 5, 200), level="darr"),
        "systems": study(one, level="system"),
        "systems judged as wholes": replace(study(one, level="system"), sets=(whole,)),
        "one metric": study(one, metrics=tuple(NOISE)[:1], significance={}, between_metrics={}),
    }


STUDIES = studies()
Draw = Callable[[str], str]


@pytest.fixture(scope="module")
def draw(tmp_path_factory: pytest.TempPathFactory) -> Draw:
    """The page of a study by its name, drawn once for all tests that look at it."""

    @cache
    def draw_once(name: str) -> str:
        folder = tmp_path_factory.mktemp("drawn")
        page = page_of(STUDIES[name], folder)
        assert [file.name for file in folder.iterdir()] == ["report.html"]
        return page

    return draw_once


@pytest.mark.parametrize("name", STUDIES)
def test_a_page_is_one_file(name: str, draw: Draw) -> None:
    page = draw(name)
    elements = Elements(page)
    assert all(link.startswith(("data:", "#")) for link in elements.links)
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    assert all(metric in elements.text for metric in STUDIES[name].metrics)
    assert all(line in elements.text for line in STUDIES[name].signatures)


@pytest.mark.parametrize("name", STUDIES)
def test_a_browser_opens_it_without_complaint(name: str, draw: Draw, open_page: OpenPage) -> None:
    _, messages = open_page(draw(name))
    assert messages == ""


def test_the_console_is_heard(open_page: OpenPage) -> None:
    _, messages = open_page("<script>console.error('heard')</script>")
    assert "heard" in messages


def hostile(made: Study) -> Study:
    """The same study, every text and name of which ends in tags and scripts."""

    def bad(text: str) -> str:
        return text + HOSTILE

    def named(keys: dict[tuple[str, str], Array]) -> dict[tuple[str, str], Array]:
        return {(bad(a), bad(b)): x for (a, b), x in keys.items()}

    sets = tuple(
        replace(
            one,
            name=bad(one.name),
            hyps=tuple(map(bad, one.hyps)),
            refs=tuple(tuple(map(bad, several)) for several in one.refs),
            system_names=tuple(map(bad, one.system_names)),
            human={bad(k): x for k, x in one.human.items()},
        )
        for one in made.sets
    )
    return replace(
        made,
        metrics=tuple(map(bad, made.metrics)),
        sets=sets,
        humans=tuple(map(bad, made.humans)),
        scores=named(made.scores),
        agreements=tuple(
            replace(a, metric=bad(a.metric), set=bad(a.set), human=bad(a.human))
            for a in made.agreements
        ),
        significance=named(made.significance),
        between_metrics={bad(k): x for k, x in made.between_metrics.items()},
        between_humans={bad(k): x for k, x in made.between_humans.items()},
        signatures=tuple(map(bad, made.signatures)),
        notes=tuple(map(bad, made.notes)),
        warnings=tuple(map(bad, made.warnings)),
    )


@pytest.mark.parametrize("name", some_ways("criteria", "systems"))
def test_tags_in_texts_stay_text(name: str, tmp_path: Path, open_page: OpenPage) -> None:
    warnings, notes = ("tuned and tested on the same rows",), ("3 rows left out",)
    tame = replace(STUDIES[name], warnings=warnings, notes=notes)
    expected, _ = open_page(page_of(tame, tmp_path))
    rendered, messages = open_page(page_of(hostile(tame), tmp_path))
    assert messages == ""
    # How many ticks an axis has depends on the room that names leave.
    names = [
        Counter({k: n for k, n in Elements(page).names.items() if k not in DRAWING})
        for page in (rendered, expected)
    ]
    assert names[0] == names[1]
    assert "<title>Metrics against people</title>" in rendered
    hyp = next(h for h in tame.sets[0].hyps if h in expected)
    assert hyp + HOSTILE in Elements(rendered).text


def test_headings_sort_and_the_chooser_chooses(draw: Draw, open_page: OpenPage) -> None:
    page = draw("sets")
    acts = """<script>
      document.querySelectorAll("thead button")[1].click();
      const select = document.querySelector("select");
      select.value = "view2";
      select.dispatchEvent(new Event("change"));
    </script></body>"""
    policy = re.compile('<meta http-equiv="Content-Security-Policy"[^>]*>')
    rendered, messages = open_page(policy.sub("", page).replace("</body>", acts))
    assert messages == ""
    first = re.findall(r'<th scope="row">[^<]*</th>\s*<td [^>]*data-value="([^"]*)"', rendered)
    values = [float(value) for value in first]
    assert len(values) == len(NOISE)
    assert values == sorted(values, reverse=True)
    assert re.search(r'<div class="view" id="view1" hidden', rendered)
    assert re.search(r'<div class="view" id="view2">', rendered)


def test_no_script_but_ours_may_run(draw: Draw, open_page: OpenPage) -> None:
    page = draw("systems")
    rendered, messages = open_page(
        page.replace("</body>", "<script>document.title='owned'</script></body>")
    )
    assert "Content Security Policy" in messages
    assert "<title>Metrics against people</title>" in rendered


@pytest.mark.parametrize("name", ["sets", "systems", "preferences"])
def test_an_axis_says_that_scores_are_negated(name: str, draw: Draw, tmp_path: Path) -> None:
    first, second = STUDIES[name].metrics[:2]
    assert not STUDIES[name].negated
    negated = page_of(replace(STUDIES[name], negated=frozenset({first})), tmp_path)
    pages = [Elements(page).text for page in (draw(name), negated)]
    marks = f"−{first} (lower is better)", "score of the worse − score of the better text"
    assert [any(mark in page for mark in marks) for page in pages] == [False, True]
    assert f"−{second}" not in pages[1]
    assert [f"negated where lower is better ({first})" in page for page in pages] == [False, True]


def test_warnings_stand_apart_from_notes(tmp_path: Path) -> None:
    warnings, notes = ("tuned and tested on the same rows",), ("3 rows have no rating",)
    page = page_of(replace(STUDIES["systems"], warnings=warnings, notes=notes), tmp_path)
    assert re.search(r'class="warning"[^>]*>.*tuned and tested on the same rows', page)
    assert re.search(r"<li>3 rows have no rating</li>", page)


MOST = judge_page._DETAILS


def test_a_large_set_gives_a_small_page(tmp_path: Path) -> None:
    large = rated("large", 2400, 25, ("da",))
    large = replace(large, hyps=tuple(text * 100 for text in large.hyps))
    page = page_of(study(large), tmp_path)
    assert len(page.encode()) < 5_000_000 * len(NOISE) / MOST
    assert "no details of" not in page


@pytest.mark.parametrize(("count", "details"), some_ways((4, 2 * len(NOISE)), (14, MOST)))
def test_many_sets_give_a_small_page(
    count: int, details: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_page, "_DETAILS", details)
    page = page_of(study(*(rated(f"wmt {k}", 1000, 2, ("da",)) for k in range(count))), tmp_path)
    assert len(page.encode()) < 5_000_000 * details / MOST
    left_out = map(str, range(details // len(NOISE), count))
    assert f"no details of {', '.join(left_out)}." in page


def test_scores_and_ratings_with_holes(tmp_path: Path) -> None:
    made = STUDIES["sets"]
    [first, *rest] = made.agreements
    empty = replace(first, value=np.nan, low=np.nan, high=np.nan)
    scores = {key: np.where(np.arange(len(x)) % 3, x, np.nan) for key, x in made.scores.items()}
    page = page_of(replace(made, agreements=(empty, *rest), scores=scores), tmp_path)
    assert "bert-score:f1</strong> agrees best" in page


def test_half_a_character_is_written_as_a_mark(tmp_path: Path) -> None:
    notes = ("broken \ud800 here",)
    assert "broken ? here" in page_of(replace(STUDIES["systems"], notes=notes), tmp_path)


@pytest.mark.parametrize(("place", "message"), [("x.pdf", "end in .html"), ("no/x.html", "folder")])
def test_places_that_cannot_be_written(place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=message):
        write_judge_report(STUDIES["systems"], tmp_path / place)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_what_is_missing_is_named(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPart, match=rf"{package} is not installed.*freight\[report\]"):
        write_judge_report(STUDIES["systems"], tmp_path / "report.html")


def test_agreement_stands_beside_its_significance(draw: Draw) -> None:
    page = draw("sets")
    beside = re.findall(
        r'<figure[^>]*><figcaption><b>Agreement</b>.*?aria-label="agreement, ([^"]*): each metric'
        r'[^"]*".*?</figure>\s*<figure[^>]*><figcaption><b>Significance of differences',
        page,
        re.DOTALL,
    )
    assert beside == ["cs-en", "de-en"]
