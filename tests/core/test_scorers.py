"""A scorer of one's own needs a name, columns and score; flags are data; signatures say it all."""

import math
import pickle
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.flags import Flag, FlagKind
from freight.core.idf import Frequencies
from freight.core.pipeline import ChunkSize, adapt
from freight.core.result import count_segments, describe
from freight.metrics.std import Weights


class Lengths:
    """The shorter length over the longer one."""

    name = "lengths"
    columns = (freight.Column("ratio", higher=True, perfect=1.0, worst=0.0),)

    def score(self, hyps: Sequence[str], refs: Any) -> freight.Result:
        firsts = [ref if isinstance(ref, str) else ref[0] for ref in refs]
        pairs = list(zip(hyps, firsts, strict=True))
        ratios = [min(map(len, both)) / max(map(len, both)) for both in pairs]
        return freight.Result.of(
            self, {"ratio": ratios}, [["odd"] if r < 1 else [] for r in ratios]
        )


def test_a_bare_scorer_is_scored_beside_metrics_in_chunks() -> None:
    hyps, refs = ["ab", "abcd", "a"], ["abcd", "abcd", "ab"]
    emd = freight.load("emd", encoder="hashed")
    size = ChunkSize(pairs=1)
    own, other = freight.score_together([Lengths(), emd], hyps, refs, size=size)
    assert own["ratio"].tolist() == [0.5, 1.0, 0.5]
    assert own.flags == (("odd",), (), ("odd",))
    assert own.system == {"ratio": pytest.approx(2 / 3)}
    assert other["transport"].tolist() == emd.score(hyps, refs)["transport"].tolist()


def test_what_an_adapted_scorer_cannot_do_is_said() -> None:
    adapted = adapt(Lengths())
    assert adapted.signature.startswith("lengths|source:")
    assert (adapted.needs_fitting, adapted.parts) == (False, ())
    assert adapted.fit(["a"]) is adapted
    with pytest.raises(freight.InvalidInput, match="lengths cannot explain"):
        adapted.explain("a", "b")


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda hyps, refs: [1.0], "returned list, not a freight.Result"),
        (lambda hyps, refs: Lengths().score(["a", "b"], ["a", "b"]), "returned 2 scores in ratio"),
    ],
)
def test_a_result_that_does_not_fit_is_refused(score: Any, message: str) -> None:
    scorer = Lengths()
    scorer.score = score  # type: ignore[method-assign]
    with pytest.raises(freight.InvalidInput, match=message):
        freight.score_together([scorer], ["a"], ["a"])


def test_what_is_no_scorer_is_named() -> None:
    thing: Any = object()
    with pytest.raises(freight.InvalidInput, match="it has no name and no columns and no score"):
        adapt(thing)


def test_a_result_needs_every_column_with_a_number_per_segment() -> None:
    with pytest.raises(freight.InvalidInput, match="no scores for its column 'ratio'"):
        freight.Result.of(Lengths(), {"other": [1.0]})
    with pytest.raises(freight.InvalidInput, match="one number per segment"):
        freight.Result.of(Lengths(), {"ratio": [[1.0]]})


def test_a_flag_is_data_that_prints_as_text() -> None:
    flag = Flag(FlagKind.UNKNOWN_UNITS, 0.372)
    assert (flag, flag.kind, flag.share) == ("unknown units 37%", FlagKind.UNKNOWN_UNITS, 0.372)
    assert (Flag("mine").share, Flag("mine").side) == (None, None)
    on_ref = flag.on("ref")
    assert (on_ref, on_ref.label) == ("unknown units 37% (ref)", "unknown units (ref)")
    assert on_ref.record == {"kind": "unknown units", "side": "ref", "share": 0.372}
    again = pickle.loads(pickle.dumps(on_ref))
    assert (again, again.record) == (on_ref, on_ref.record)


def test_flags_are_counted_by_segment_and_side() -> None:
    few, many = (Flag(FlagKind.UNKNOWN_UNITS, share) for share in (0.25, 0.75))
    segments = [[few.on("ref"), many.on("ref"), few.on("hyp")], [many.on("ref")], []]
    assert count_segments(segments) == {"unknown units (hyp)": 1, "unknown units (ref)": 2}


def test_the_unknown_share_of_a_result_is_that_of_its_worse_sides() -> None:
    column = freight.Column("x", higher=True, perfect=1.0, worst=0.0)
    flags = ((Flag(FlagKind.UNKNOWN_UNITS, 0.25), Flag(FlagKind.UNKNOWN_UNITS, 0.75)), ())
    result = freight.Result("x", (column,), {"x": np.zeros(2)}, np.zeros(2, int), flags, "x")
    assert result.unknown == pytest.approx(0.375)


def test_choices_are_described_by_name_and_fields() -> None:
    assert describe(describe) == "describe"
    assert describe((1, 2.5)) == "1,2.5"
    assert describe(partial(int, base=2)) == "int({'base': 2})"
    problem = freight.Problem(hyp=0.3, ref=math.inf)
    assert describe(problem) == "Problem(hyp=0.3,ref=inf,epsilon=0.0)"
    assert describe(freight.Column("score", True, 1.0, 0.0)) == "score"


def test_every_parameter_of_a_metric_is_in_its_signature() -> None:
    plain = freight.load("lazy-emd", encoder="hashed").signature
    changes: list[dict[str, Any]] = [
        {"hyp": 0.4}, {"ref": 0.4}, {"epsilon": 0.01}, {"layer": 2}, {"mass": "norm"},
        {"unit": "words"}, {"pooling": "unit-mean", "layer": [1, 2]}, {"references": "mean"},
        {"cut": 0.9},
    ]  # fmt: skip
    signed = {freight.load("lazy-emd", encoder="hashed", **change).signature for change in changes}
    assert len(signed) == len(changes)
    assert plain not in signed
    assert plain.endswith(f"|version:{freight.__version__}")


def test_a_blend_weighs_segments_and_systems_apart() -> None:
    weights = Weights((0.5, 0.5), (0.3, 0.7))
    assert weights.total({"unigram": 0.2, "bigram": 0.4, "distance": 0.3, "similarity": 0.7}) == {
        "unigram": 0.2,
        "bigram": 0.4,
        "distance": pytest.approx(0.34),
        "similarity": pytest.approx(0.66),
    }
    std = freight.load("std", encoder="hashed")
    result = std.score(["a b c", "a b"], ["a c b", "b a"])
    expected = 0.5 * result["unigram"] + 0.5 * result["bigram"]
    assert result["distance"].tolist() == pytest.approx(expected.tolist())
    means = result["unigram"].mean(), result["bigram"].mean()
    assert result.system["distance"] == pytest.approx(0.3 * means[0] + 0.7 * means[1])


def test_document_frequencies_count_texts_not_words() -> None:
    hashed = freight.encoder("hashed")
    table = Frequencies.of([hashed.encode(["a a b", "a", "a"], [])])
    ids = hashed.encode(["a b c"], []).ids
    assert (table.documents, table(ids).tolist()) == (3, [3, 1, 0])
    assert table.identity.startswith("fit, 3 texts, sha256-")


def test_one_call(capsys: pytest.CaptureFixture[str]) -> None:
    hyps, refs = ["a cat", "a dog"], ["the cat", ["the dog", "a dog"]]
    expected = freight.load("emd", encoder="hashed").score(hyps, refs)
    result = freight.score(hyps, refs, "emd", encoder="hashed")
    assert (result["transport"] == expected["transport"]).all()
    assert freight.score(hyps, refs, freight.load("chrf")).name == "chrf"
    with pytest.raises(freight.InvalidInput, match="is loaded already; layer cannot be set"):
        freight.score(hyps, refs, freight.load("chrf"), layer=3)
    assert not capsys.readouterr().err


def test_progress_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    counts: list[float] = []
    freight.score(["a cat"] * 3, ["the cat"] * 3, "chrf", progress=counts.append)
    assert sum(counts) == pytest.approx(3)
    freight.score(["a cat"] * 3, ["the cat"] * 3, "chrf", progress=True)
    assert "3/3" in capsys.readouterr().err


def test_a_table_keeps_what_it_is_given() -> None:
    result = freight.score(["a cat", "a dog"], ["the cat", "a dog"], "chrf")
    table = result.to_arrow(id=["x", "y"], hyp=["a cat", "a dog"])
    assert table.column_names == ["id", "hyp", "score", "reference", "flags"]
    with pytest.raises(freight.InvalidInput, match="id has 1 values for 2 segments"):
        result.to_arrow(id=["x"])
    for name in ("score", "reference", "flags"):
        with pytest.raises(freight.InvalidInput, match=f"has a column {name} itself"):
            result.to_arrow(**{name: ["x", "y"]})
