"""Every metric loads into Hugging Face evaluate out of its folder, and scores as it always does."""

import ast
import doctest
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evaluate
import pytest
import yaml
from typer.testing import CliRunner

import freight
from freight.cli import app
from freight.interop.evaluate import MetricCard, module_files, write_module

HYPS = ["a cat sat on the mat", "the dog", "rain fell all day", "it was late"]
REFS = ["a cat sat", "the old dog", "it rained all day", "it was late"]
SEVERAL = [["a cat sat"], ["the old dog", "a dog"], ["it rained all day"], ["it was late", "late"]]
TRANSPORT = [name for name in freight.list_metrics() if "encoder" in freight.parameters(name)]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders of modules; what evaluate writes goes beside them, and nothing is asked for."""
    root = tmp_path_factory.mktemp("modules")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate.config, "HF_MODULES_CACHE", root / "cache")
        patch.setattr(evaluate.config, "HF_METRICS_CACHE", root / "metrics")
        patch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
        for name in [name for name in sys.modules if name.startswith("evaluate_modules")]:
            patch.delitem(sys.modules, name)
        yield root


def module(home: Path, name: str, *configuration: str, **settings: Any) -> Any:
    light = {"encoder": "hashed"} if name in TRANSPORT else {}
    folder = home / MetricCard(name).slug
    if not folder.exists():
        write_module(home, name)
    return evaluate.load(str(folder), *configuration, **{**light, **settings})


@pytest.mark.parametrize("name", [*TRANSPORT, "bleu"])
def test_scores_are_the_metrics_own(home: Path, name: str) -> None:
    metric = module(home, name)
    light = {"encoder": "hashed"} if name in TRANSPORT else {}
    expected = freight.load(name, **light).score(HYPS, SEVERAL).system
    assert metric.compute(predictions=HYPS, references=SEVERAL) == expected
    metric.add_batch(predictions=HYPS[:1], references=REFS[:1])
    metric.add_batch(predictions=HYPS[1:3], references=SEVERAL[1:3])
    metric.add(prediction=HYPS[3], reference=SEVERAL[3])
    assert metric.compute() == expected
    plain = freight.load(name, **light).score(HYPS, REFS).system
    assert metric.compute(predictions=HYPS, references=REFS) == plain


def test_settings_of_loading_and_of_computing(home: Path) -> None:
    metric = module(home, "lazy-emd", "paper", several="mean")
    texts = {"predictions": HYPS, "references": SEVERAL}

    def expected(**settings: Any) -> dict[str, float]:
        return freight.load("lazy-emd", encoder="hashed", **settings).score(HYPS, SEVERAL).system

    assert metric.compute(**texts) == expected(preset="paper", references="mean")
    scores = metric.compute(**texts, hyp=0.5, idf="ref", layer=2, several="best")
    assert scores == expected(preset="paper", hyp=0.5, idf="ref", layer=2)
    assert metric.compute(**texts) == expected(preset="paper", references="mean")


def test_details(home: Path) -> None:
    result = module(home, "emd").compute(predictions=["", "a"], references=["b", "a"], details=True)
    expected = freight.load("emd", encoder="hashed").score(["", "a"], ["b", "a"])
    assert result["segments"]["transport"] == expected["transport"].tolist()
    assert result["flags"] == [[{"kind": "empty side", "side": "hyp", "share": None}], []]
    assert result["signature"] == expected.signature


def test_metrics_combine(home: Path) -> None:
    both = evaluate.combine([module(home, "emd"), module(home, "bleu")])
    scores = both.compute(predictions=HYPS, references=REFS)
    assert {*scores} == {"transport", "objective", "score"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"predictions": ["a", "b"], "references": ["c"]}, "2 hypotheses but 1 references"),
        ({"predictions": "a", "references": ["c"]}, "predictions is one text; give a list"),
        ({"predictions": ["a", 3], "references": ["b", "c"]}, r"predictions\[1\] is 3, not a text"),
        ({"predictions": ["a"], "references": [["b", None]]}, r"references\[0\]\[1\] is None"),
        ({"predictions": ["a"], "references": [[]]}, r"references\[0\] is an empty list"),
        ({"predictions": ["a"]}, "references is None; give a list of texts"),
        ({"predictions": [], "references": []}, "predictions and references are empty"),
        ({"predictions": ["a"], "references": ["b"], "penalty": 1}, "emd has no parameter"),
    ],
)
def test_mistakes_are_named_and_leave_what_was_added(
    home: Path, given: dict[str, Any], message: str
) -> None:
    metric = module(home, "emd")
    metric.add_batch(predictions=HYPS, references=REFS)
    with pytest.raises(freight.InvalidInput, match=message) as caught:
        metric.compute(**given)
    assert "\n" not in str(caught.value)
    assert metric.compute() == freight.load("emd", encoder="hashed").score(HYPS, REFS).system


def test_mistakes_of_loading(home: Path) -> None:
    with pytest.raises(freight.InvalidInput, match="no configuration 'papers'; there is default, "):
        module(home, "lazy-emd", "papers")
    with pytest.raises(freight.InvalidInput, match="lazy-emd has no parameter 'penalty'"):
        module(home, "lazy-emd", penalty=1)


@pytest.mark.parametrize("name", ["lazy-emd", "std", "chrf++", "s+wms"])
def test_the_card_is_true(home: Path, name: str) -> None:
    about = MetricCard(name)
    module(home, name)
    card = (home / about.slug / "README.md").read_text(encoding="utf-8")
    parts = re.fullmatch(r"---\n(.*?)\n---\n(.*)", card, re.DOTALL)
    assert parts is not None
    matter, body = parts.groups()
    assert {"evaluate", "metric"} <= {*yaml.safe_load(matter)["tags"]}
    for word in (about.summary, about.paper, *(column.name for column in about.columns)):
        assert word in body
    example = re.search(r"```python\n(.*?)```", body, re.DOTALL)
    assert example is not None
    session = example[1].replace(f'load("{about.slug}"', f'load("{home / about.slug}"')
    test = doctest.DocTestParser().get_doctest(session, {}, name, None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", [name for name in freight.list_metrics() if name != "meteor"])
def test_every_metric_can_be_described(name: str) -> None:
    about = MetricCard(name)
    files = module_files(about)
    assert set(files) == {f"{about.slug}.py", "app.py", "requirements.txt", "README.md"}
    assert about.slug.isidentifier()
    for file in (f"{about.slug}.py", "app.py"):
        ast.parse(files[file])
    assert not re.search(r"\{\w*\}", files["README.md"])
    assert (name in ("freight", "freight-da")) == (not about.paper)


def test_the_command_writes_folders(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", "evaluate", "-o", str(tmp_path), "-m", "wer"])
    assert done.exit_code == 0, done.output
    assert done.output == f'evaluate.load("{tmp_path / "wer"}")\n'
    done = CliRunner().invoke(app, ["export", "evaluate", "-o", str(tmp_path), "-m", "wire"])
    assert isinstance(done.exception, freight.InvalidInput)
    file = tmp_path / "wer" / "wer.py"
    done = CliRunner().invoke(app, ["export", "evaluate", "-o", str(file), "-m", "wer"])
    assert "is a file; name a folder" in str(done.exception)
