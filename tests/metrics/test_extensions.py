"""Metrics of one's own: from a file, from an installed package, and the mistakes one makes."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch

import freight
from freight.cli import main
from freight.core.pipeline import adapt
from freight.encoders.cache.disk import DiskCached
from freight.errors import InvalidInput
from freight.metrics import extensions, find_metric
from freight.metrics.extensions import is_in_file

OWN = '''\
"""Metrics of one's own."""

import numpy as np

import freight

PRICE = 0.3


class Lengths:
    """How much longer the hypothesis is."""

    name = "lengths"
    columns = (freight.Column("excess", higher=False, perfect=0.0, worst=9.0),)
    references = "best"
    parts = ()
    signature = "lengths"
    needs_fitting = False

    def __init__(self, factor: float = 1.0):
        self.factor = factor

    def score(self, hyps, refs):
        return freight.Result.of(self, {"excess": [self.factor * len(hyp) for hyp in hyps]})


def serve(encoder: str = "hashed", price: float = 0.3, times: int = 1):
    """Earth mover's distance under another name.

    More about it.
    """
    import dataclasses

    emd = freight.load("emd", encoder=encoder)
    return dataclasses.replace(emd, name="serve", problems=(freight.Problem(hyp=price),))


ready = serve()
lengths = Lengths()


def nothing():
    return 3


def broken():
    return 1 / 0


def breaking():
    import dataclasses

    def cost(pairs):
        raise ValueError("no such\\ncost")

    return dataclasses.replace(serve(), name="breaking", cost=cost)
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of metrics, in the folder from which commands are run."""
    path = tmp_path / "coverage.py"
    path.write_text(OWN)
    (tmp_path / "hyp.txt").write_text("a cat sat\na dog\n")
    (tmp_path / "ref.txt").write_text("the cat sat\nthe dog barked\n")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def refuse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """The one line that a command fails with, exit status 1."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["freight", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 1
        error = capsys.readouterr().err
        assert error.startswith("freight: ")
        assert error.count("\n") == 1
        return error.removeprefix("freight: ").rstrip("\n")

    return run


def test_what_is_in_a_file() -> None:
    assert is_in_file("my.py:serve")
    assert is_in_file("my.py")
    assert not is_in_file("emd")
    assert not is_in_file("emd:transport")


def test_a_factory_a_metric_and_a_class_are_loaded(own: Path) -> None:
    metric: Any = freight.load("coverage.py:serve", price=0.5)
    assert metric.name == "serve"
    assert metric.problems == (freight.Problem(hyp=0.5),)
    ready: Any = freight.load(f"{own}:ready", column="objective")
    assert [column.name for column in ready.columns] == ["objective", "transport"]
    assert freight.load("coverage.py:Lengths", factor=2.0).score(["abc"], ["x"])["excess"] == [6.0]
    assert freight.load("coverage.py:lengths").score(["abc"], ["x"])["excess"] == [3.0]
    assert metric.score(["a cat"], ["a cat"])["transport"][0] == pytest.approx(0.0, abs=1e-6)


def test_the_parameters_are_those_of_the_signature(own: Path) -> None:
    known = freight.parameters("coverage.py:serve")
    shared = ["preset", "column", "lang", "adapter", "cross_lingual"]
    assert list(known) == ["encoder", "price", "times", *shared]
    assert known["price"].default == 0.3
    assert freight.default_encoder("coverage.py:serve") == "hashed"
    assert find_metric("coverage.py:serve").summary == "Earth mover's distance under another name."
    line = "price='x' of coverage.py:serve: must be a number"
    with pytest.raises(InvalidInput, match=line):
        freight.load("coverage.py:serve", price="x")
    with pytest.raises(InvalidInput, match=r"coverage\.py:serve has no parameter 'prize'"):
        freight.load("coverage.py:serve", prize=0.5)


def test_a_file_does_not_hide_a_package_of_the_same_name(own: Path) -> None:
    freight.load("coverage.py:serve")
    assert "coverage" not in sys.modules or sys.modules["coverage"].__file__ != str(own)
    assert str(own.parent) not in sys.path


def test_a_file_is_loaded_once_until_it_changes(own: Path) -> None:
    first = extensions.load_file("coverage.py")
    assert extensions.load_file(str(own)) is first
    own.write_text(OWN.replace("PRICE = 0.3", "PRICE = 0.4"))
    assert extensions.load_file("coverage.py").PRICE == 0.4


def test_another_process_unpickles_the_metric(own: Path, tmp_path: Path) -> None:
    pickled = tmp_path / "pickled"
    pickled.write_bytes(pickle.dumps(freight.load("coverage.py:lengths")))
    code = (
        "import pickle, sys; scorer = pickle.load(open(sys.argv[1], 'rb'));"
        "print(scorer.score(['abc'], ['x'])['excess'])"
    )
    command = [sys.executable, "-c", code, str(pickled)]
    here = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=here, text=True, capture_output=True, check=True)
    assert done.stdout == "[3.]\n"


@pytest.mark.parametrize(
    ("content", "name", "line"),
    [
        ("def f(:\n", "f", "own.py, line 1: SyntaxError: invalid syntax"),
        ("x = 1\nimport nowhere_at_all\n", "f", "own.py, line 2: ModuleNotFoundError: No module"),
        ("def g():\n    raise KeyError('a')\n\ng()\n", "f", "own.py, line 2: KeyError: 'a'"),
        ("raise SystemExit(3)\n", "f", "own.py, line 1: SystemExit: 3"),
        ("def measure(): ...\n", "mesure", "own.py has no 'mesure'; did you mean measure?"),
        ("def f(): ...\n", "zzz", "own.py has no 'zzz'; it has f"),
        ("", "f", "own.py has no 'f'; it has nothing"),
        ("f = 'text'\n", "f", "own.py:f is a str; give a function that returns a metric"),
        ("def f(): ...\n", "f", "own.py:f returned None; it has to return a Metric, or an object"),
        ("def f(x): ...\n", "f", "own.py:f needs a value for x"),
    ],
)
def test_a_mistake_is_one_line_with_the_file_and_its_line(
    content: str, name: str, line: str, own: Path, refuse: Callable[..., str]
) -> None:
    own.with_name("own.py").write_text(content)
    assert refuse("score", "hyp.txt", "ref.txt", "-m", f"own.py:{name}").startswith(line)


def test_a_file_that_is_not_there_or_lacks_a_name(own: Path, refuse: Callable[..., str]) -> None:
    assert refuse("metrics", "none.py:f") == (
        "the file none.py cannot be read: No such file or directory"
    )
    line = refuse("explain", "a", "b", "-m", "coverage.py")
    assert line.startswith("coverage.py is a file; say which metric of it, as in coverage.py:NAME")
    assert "serve" in line


def test_mistakes_while_building_and_scoring_name_the_line(
    own: Path, refuse: Callable[..., str]
) -> None:
    lines = OWN.splitlines()
    division = lines.index("    return 1 / 0") + 1
    assert refuse("score", "hyp.txt", "ref.txt", "-m", "coverage.py:broken") == (
        f"coverage.py, line {division}: ZeroDivisionError: division by zero"
    )
    raised = next(k for k, text in enumerate(lines, 1) if "no such" in text)
    assert refuse("score", "hyp.txt", "ref.txt", "-m", "coverage.py:breaking") == (
        f"coverage.py, line {raised}: ValueError: no such cost"
    )
    assert refuse("score", "hyp.txt", "ref.txt", "-m", "coverage.py:nothing").startswith(
        "coverage.py:nothing returned a int"
    )


def test_scored_and_set_from_the_command_line(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    def score(*settings: str) -> dict[str, Any]:
        command = ["freight", "score", "hyp.txt", "ref.txt", "-m", "coverage.py:serve:objective"]
        monkeypatch.setattr(sys, "argv", [*command, *settings, "--json"])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)["metrics"][0]
        return answer

    metric: Any = freight.load("coverage.py:serve", price=0.1)
    expected = metric.score(["a cat sat", "a dog"], ["the cat sat", "the dog barked"]).system
    for setting in ("price=0.1", "coverage.py:serve.price=0.1"):
        answer = score("--set", setting)
        assert answer["metric"] == "serve"
        assert answer["system"]["objective"] == pytest.approx(expected["objective"])
    assert score()["system"]["objective"] != pytest.approx(expected["objective"])


def test_two_metrics_of_one_name_are_refused(own: Path, refuse: Callable[..., str]) -> None:
    line = refuse(
        "score", "hyp.txt", "ref.txt", "-m", "coverage.py:serve", "-m", "coverage.py:ready"
    )
    assert line == "two metrics are called serve; name one of them otherwise"


def install(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    entries = {name: EntryPoint(name, value, extensions.GROUP) for name, value in values.items()}
    monkeypatch.setattr("freight.metrics.extensions.installed", lambda: entries)


def test_installed_metrics_are_named_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, mine="freight.metrics.wmd:wmdo", emd="nowhere:f", gone="nowhere_at_all:f")
    assert freight.load("mine", encoder="hashed").name == "wmdo"
    listed = freight.list_metrics()
    assert listed["mine"].startswith("Word mover's distance")
    assert "cannot be loaded: ModuleNotFoundError" in listed["gone"]
    assert freight.load("emd", encoder="hashed").name == "emd"  # the built-in one
    with pytest.raises(InvalidInput, match="the metric gone of nowhere_at_all:f cannot be loaded"):
        freight.load("gone")
    with pytest.raises(InvalidInput, match="did you mean mine"):
        freight.load("mien")


def test_errors_of_others_are_not_blamed_on_a_file() -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("x")
    assert extensions.blame(raised.value) is None


def test_the_file_of_the_guide_is_the_example() -> None:
    root = Path(__file__).parents[2]
    example = (root / "examples/own_metric.py").read_text("utf-8")
    assert f"```python\n{example}```" in (root / "docs/own-metric.md").read_text("utf-8")


PARTS = '''\
"""A metric whose parts are all of one's own."""

import numpy as np
import torch

import freight
from freight.core import readouts, units
from freight.core.weightings import measures


def own_units(cloud):
    return units.words(cloud)


def own_weighting(cloud):
    return measures(cloud, (cloud.end - cloud.start).astype(float))


def own_cost(pairs):
    return 1.0 - pairs.similarity()


class OwnReadout:
    def __call__(self, plans, pairs):
        return readouts.Transport()(plans, pairs)


class OwnEncoder:
    identity, depth, inner = "own", 1, freight.encoder("hashed")

    def encode(self, texts, layers, progress=None):
        return self.inner.encode(texts, layers, progress)


def metric():
    return freight.Metric(
        name="own", encoder=OwnEncoder(), layers=(0,), units=own_units, weighting=own_weighting,
        cost=own_cost, problems=(freight.Problem(),), readout=OwnReadout(),
        columns=(
            freight.Column("objective", higher=False, perfect=0.0, worst=1.0),
            freight.Column("transport", higher=False, perfect=0.0, worst=1.0),
        ),
    )


class Scorer:
    name = "length"
    columns = (freight.Column("excess", higher=False, perfect=0.0, worst=9.0),)

    def score(self, hyps, refs):
        return freight.Result.of(self, {"excess": [float(len(hyp)) for hyp in hyps]})
'''


@pytest.fixture
def parts(own: Path) -> Path:
    """A file with a metric of own parts, and a scorer."""
    path = own.with_name("parts.py")
    path.write_text(PARTS)
    return path


def test_every_part_may_be_of_ones_own(parts: Path) -> None:
    metric: Any = freight.load("parts.py:metric")
    result = metric.score(["a cat sat", "a dog"], ["the cat sat", "a dog"])
    assert 0.0 < result["objective"][0] <= 1.0
    assert result["objective"][1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("right", "wrong", "where", "line"),
    [
        ("own_units(cloud)", "own_units()", "def own_units", "the units of own cannot be called"),
        ("return units.words(cloud)", "pass", "def own_units", "the units of own returned None"),
        ("own_weighting(cloud)", "own_weighting()", "def own_w", "the weighting of own cannot be"),
        (
            "measures(cloud, (cloud.end - cloud.start).astype(float))",
            "(cloud.end - cloud.start).astype(float)",
            "def own_weighting",
            "the weighting of own returned a ndarray; it has to return a Measures",
        ),
        (
            ".astype(float)",
            ".astype(float) * np.nan",
            "def own_weighting",
            "the weighting of own has masses that are negative, nan or infinite",
        ),
        ("own_cost(pairs)", "own_cost()", "def own_cost", "the cost of own cannot be called as it"),
        ("return 1.0 - pairs", "1.0 - pairs", "def own_cost", "the cost of own returned None"),
        (
            "1.0 - pairs.similarity()",
            "1.0 - pairs.similarity().numpy()",
            "def own_cost",
            "the cost of own returned a ndarray; it has to return a Tensor",
        ),
        (
            "1.0 - pairs.similarity()",
            "pairs.similarity()[0]",
            "def own_cost",
            "the cost of own has shape",
        ),
        (
            "readouts.Transport()(plans, pairs)",
            "{'objective': 1.0}",
            "    def __call__",
            "the readout of own returned a dict; it has to return a Reading",
        ),
        (
            '"transport", h',
            '"transprt", h',
            "    def __call__",
            "the readout of own gives transport, objective; the metric has the columns",
        ),
        (
            "layers, progress=None",
            "layers",
            "    def encode",
            "the method encode of OwnEncoder cannot be called as it is: OwnEncoder.encode() takes",
        ),
        (
            "self.inner.encode(texts, layers, progress)",
            "torch.zeros(3)",
            "    def encode",
            "the method encode of OwnEncoder returned a Tensor; it has to return a Cloud",
        ),
    ],
)
def test_a_part_of_the_wrong_form_is_named_with_its_line(
    right: str, wrong: str, where: str, line: str, parts: Path, refuse: Callable[..., str]
) -> None:
    assert PARTS.count(right) == 1
    parts.write_text(PARTS.replace(right, wrong))
    at = next(k for k, text in enumerate(PARTS.splitlines(), 1) if text.startswith(where))
    told = refuse("score", "hyp.txt", "ref.txt", "-m", "parts.py:metric")
    assert told.startswith(f"parts.py, line {at}: {line}")


def test_a_scorer_of_the_wrong_form_is_named_with_its_line(
    parts: Path, refuse: Callable[..., str]
) -> None:
    at = next(k for k, text in enumerate(PARTS.splitlines(), 1) if "def score" in text)
    for wrong, line in (
        (("score(self, hyps, refs)", "score(self, hyps)"), "length.score cannot be called as it"),
        (("return freight.Result", "freight.Result"), "length.score returned NoneType, not a"),
    ):
        parts.write_text(PARTS.replace(*wrong))
        told = refuse("score", "hyp.txt", "ref.txt", "-m", "parts.py:Scorer")
        assert told.startswith(f"parts.py, line {at}: {line}")


@pytest.mark.parametrize("name", ["metric", "Scorer"])
def test_a_file_that_changes_has_another_signature(name: str, parts: Path) -> None:
    def sign() -> str:
        return adapt(freight.load(f"parts.py:{name}")).signature

    before = sign()
    assert sign() == before
    assert " object at 0x" not in before
    parts.write_text(PARTS.replace("1.0 - pairs.similarity()", "1.5 - pairs.similarity()"))
    assert sign() != before


def test_a_built_in_metric_signs_as_ever() -> None:
    assert "@" not in str(freight.load("emd", encoder="hashed").signature).replace("hash@", "")


def test_judging_an_edited_file_reads_no_old_scores(
    parts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(parts.parent / "cache"))
    rows = ["the cat sat\ta cat sat\t1", "the dog\ta dog\t2", "all is well\tno\t3", "x y z\tx y\t4"]
    parts.with_name("set.tsv").write_text("\n".join(["ref\thyp\thuman", *rows]) + "\n")

    def judge() -> str:
        command = ["freight", "judge", "set.tsv", "-m", "parts.py:metric", "--no-sentinels"]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
        return capsys.readouterr().out

    judge()
    assert "scores from the cache: own" in judge()
    parts.write_text(PARTS.replace("1.0 - pairs.similarity()", "1.5 - pairs.similarity()"))
    assert "scores from the cache" not in judge()


def test_a_cache_of_vectors_keeps_the_versions_of_a_file_apart(parts: Path) -> None:
    def encode() -> torch.Tensor:
        encoder = extensions.load_file("parts.py").OwnEncoder()
        return DiskCached(encoder, str(parts.parent / "cache")).encode(["a cat"], [0]).layers

    before = encode()
    assert encode().equal(before)
    parts.write_text(PARTS.replace('"hashed"', '"one-hot"'))
    assert not encode().equal(before)
