"""Every metric's facts stand on its factory, and are what the built metric has."""

import subprocess
import sys
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pytest
from pydantic import Field

import freight
from freight.core.result import REFERENCES
from freight.core.weightings import MASSES
from freight.encoders import list_encoders
from freight.errors import InvalidInput
from freight.metrics import find_metric, parameter_types
from freight.metrics.declaration import (
    HIGHER,
    LOWER,
    REQUIRED,
    ByLanguage,
    Declaration,
    Expected,
    Menu,
    Parameter,
    Slider,
    declare,
)
from freight.metrics.parts import POOLINGS, UNITS

every_metric = pytest.mark.parametrize("name", freight.list_metrics())

LIGHT = """
import sys, freight
from freight.metrics import find_metric
for name in freight.list_metrics():
    declaration = find_metric(name)
    assert declaration.columns and declaration.summary
    for parameter in declaration.parameters.values():
        assert parameter.description and parameter.expect(), (name, parameter.name)
heavy = {"torch", "transformers", "numpy"} & {*sys.modules}
assert not heavy, heavy
"""


def load_light(name: str, **settings: Any) -> Any:
    """A metric that needs neither a download nor data that may be missing."""
    light = {"encoder": "hashed"} if "encoder" in freight.parameters(name) else {}
    try:
        return freight.load(name, **light, **settings)
    except freight.MissingPart as missing:
        pytest.skip(str(missing))


def test_listing_parameters_and_columns_imports_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


@every_metric
def test_declared_columns_are_those_of_the_built_metric(name: str) -> None:
    declared = find_metric(name).columns
    assert declared is not None
    built = {c.name: HIGHER if c.higher else LOWER for c in load_light(name).columns}
    assert list(built.items()) == list(declared.items())


@every_metric
def test_every_parameter_has_a_sentence_and_a_default_that_it_accepts(name: str) -> None:
    for parameter in find_metric(name).parameters.values():
        assert parameter.description.endswith("."), parameter.name
        assert parameter.check(name, parameter.default) == parameter.default
        assert parameter.check(name, parameter.automatic) == parameter.automatic


@every_metric
def test_presets_set_parameters_to_values_that_these_accept(name: str) -> None:
    declaration = find_metric(name)
    for settings in declaration.presets.values():
        for parameter, value in settings.items():
            assert declaration.parameters[parameter].check(name, value) == value


@every_metric
def test_the_name_the_page_and_the_paper(name: str) -> None:
    declaration = find_metric(name)
    assert declaration.name == name == load_light(name).name
    assert name in ("freight", "freight-da") or any(
        digits in declaration.paper for digits in ("19", "20")
    )
    assert declaration.summary.endswith(".")


def test_names_in_the_types_are_those_of_the_core() -> None:
    def choices(annotated: Any) -> tuple[Any, ...]:
        return Parameter("x", annotated).choices

    assert choices(parameter_types.MassName) == tuple(MASSES)
    assert choices(parameter_types.ReferencesRule) == REFERENCES
    assert choices(parameter_types.UnitName) == tuple(UNITS)
    assert choices(parameter_types.PoolingName) == (*POOLINGS, "barycenter", "standardised")
    defaults = {freight.default_encoder(name) for name in freight.list_metrics()} - {None}
    assert defaults <= set(list_encoders())


@declare("example", columns={"score": HIGHER}, presets={"steep": {"slope": 9.0}}, paper="Me, 2020.")
def example(
    slope: Annotated[float, Field(ge=0.0, description="How steep."), Slider(0.1, 10.0)] = 1.0,
    times: Annotated[int, Field(ge=1, le=9)] = 2,
    side: Annotated[Literal["hyp", "ref"] | None, Menu(("hyp",))] = None,
    loud: bool = False,
    pooling: str = "mean",
) -> tuple[Any, ...]:
    """What it is.

    What else
    there is.

    And more.
    """
    return slope, times, side, loud, pooling


def test_a_declaration_is_still_the_factory() -> None:
    assert example() == (1.0, 2, None, False, "mean")
    assert example(3, loud=True) == (3, 2, None, True, "mean")
    factory: Any = example  # update_wrapper gives it the name
    assert factory.__name__ == "example"
    assert example.summary == "What it is."
    assert example.notes == ["What else there is.", "And more."]
    assert example.page == "example"
    assert list(example.parameters) == ["slope", "times", "side", "loud", "pooling"]
    assert list(example.settable)[-2:] == ["preset", "column"]
    assert example.parameters["slope"].description == "How steep."


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slope": -1}, "slope=-1 of example: must be 0 or more"),
        ({"slope": "steep"}, "slope='steep' of example: must be a number, 0 or more"),
        ({"slope": True}, "slope=True of example: must be a number, 0 or more"),
        ({"slope": float("nan")}, "slope=nan of example: must be 0 or more"),
        ({"times": 0}, "times=0 of example: must be 1 to 9"),
        ({"times": 2.0}, "times=2.0 of example: must be a whole number, 1 to 9"),
        ({"side": "both"}, "side='both' of example: must be one of hyp, ref"),
        ({"loud": 1}, "loud=1 of example: must be true or false"),
        ({"pooling": 3}, "pooling=3 of example: must be a text"),
        ({"pooling": "x" * 99, "loud": "y" * 99}, f"loud='{'y' * 39}… of example"),
        ({"depth": 3}, "example has no parameter 'depth'; there is slope, times, side, loud,"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_it(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        example(**settings)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_values_keep_their_type_and_numbers_of_numpy_are_numbers() -> None:
    assert repr(example(slope=2)[0]) == "2"
    half: Any = np.float32(0.5)
    three: Any = np.int64(3)
    assert example(slope=half, times=three)[:2] == (0.5, 3)
    assert type(example(times=three)[1]) is int


def test_infinity_is_accepted_unless_the_type_excludes_it() -> None:
    assert example(slope=float("inf"))[0] == float("inf")
    finite = Parameter("x", Annotated[float, Field(gt=0.0, allow_inf_nan=False)])
    assert not finite.accepts(float("inf"))
    assert finite.expect(0.0) == "above 0 and finite"


@pytest.mark.parametrize(
    ("annotation", "phrase"),
    [
        (int, "a whole number"),
        (Annotated[float, Field(ge=-1.0, lt=1.0)], "a number, -1 or more and below 1"),
        (Annotated[float, Field(gt=0.0, lt=1.0)], "a number, above 0 and below 1"),
        (Literal["a", "b"] | float, "one of a, b or a number"),
        (Annotated[str, Expected("a colour")], "a colour"),
        (dict, "of the type dict"),
    ],
)
def test_what_is_expected_in_words(annotation: Any, phrase: str) -> None:
    assert Parameter("x", annotation).expect() == phrase


def test_the_old_name_of_a_parameter_is_accepted_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="join of example is called pooling now") as caught:
        assert example(join="unit-mean")[-1] == "unit-mean"  # type: ignore[call-arg]
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match="join of emd") as caught:
        metric: Any = freight.load("emd", encoder="hashed", join="unit-mean")
    assert caught[0].filename == __file__
    assert metric == freight.load("emd", encoder="hashed", pooling="unit-mean")
    assert "pooling=unit_mean" in metric.signature
    with pytest.raises(InvalidInput, match="wmd has no parameter 'join'"):
        freight.load("wmd", join="mean")


def test_a_default_that_depends_on_the_language() -> None:
    by_language = ByLanguage({"en": 1, "zh": 2}, other=3)
    assert [by_language.choose(lang) for lang in (None, "en", "zh", "cs")] == [1, 1, 2, 3]
    parameter = Parameter("x", Annotated[int | None, by_language], None)
    assert (parameter.default, parameter.automatic) == (None, 1)
    assert find_metric("lazy-emd").parameters["hyp"].automatic == 0.23


def test_a_parameter_without_a_default_is_asked_for() -> None:
    def factory(width: float) -> float:
        return width

    declared = Declaration(factory, "wide")
    assert declared.parameters["width"].default is REQUIRED
    with pytest.raises(InvalidInput, match="wide needs a value for width"):
        declared()  # type: ignore[call-arg]
    assert declared(2.0) == 2.0


def test_annotations_in_text_and_those_that_cannot_be_read() -> None:
    def factory(a: "float" = 1.0, b: "Nowhere" = 2, c=3) -> "Elsewhere":  # type: ignore  # noqa: F821
        return a, b, c

    declared: Declaration[..., Any] = Declaration(factory, "texts")
    with pytest.raises(InvalidInput, match="a='x' of texts: must be a number"):
        declared(a="x")
    assert declared(a=2, b="anything", c=None) == (2, "anything", None)


def test_the_same_line_from_python_the_command_line_and_a_preset(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from freight.cli import main

    line = "hyp=-1 of lazy-emd: must be 0 or more"
    with pytest.raises(InvalidInput, match=line):
        freight.load("lazy-emd", hyp=-1)
    preset = tmp_path / "bad.json"
    preset.write_text('{"metric": "lazy-emd", "settings": {"hyp": -1}}')
    with pytest.raises(InvalidInput, match=line):
        freight.load("lazy-emd", preset=str(preset))
    for arguments in (["--set", "hyp=-1"], ["--set", "lazy-emd.hyp=-1"]):
        command = ["freight", "explain", "a", "b", "-m", "lazy-emd", *arguments]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 1
        assert capsys.readouterr().err == f"freight: {line}\n"


def test_the_literals_of_the_read_outs_are_the_columns() -> None:
    columns = find_metric("lazy-emd").columns
    assert columns is not None
    assert set(get_args(parameter_types.ReadoutName)) == set(columns)
