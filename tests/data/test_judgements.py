"""Judgement sets: every form and format gives the same, and mistakes are named on loading."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from freight.data.judgement_files import read_judgements, read_ratings
from freight.data.judgements import Judgements, check_leaks
from freight.errors import InvalidInput

Rows = list[dict[str, Any]]
RATED: Rows = [
    {"lang_pair": "cs-en", "segment": 7, "system": "A", "ref": "r7", "hyp": "a7", "human": 1.5},
    {"lang_pair": "cs-en", "segment": 7, "system": "B", "ref": "r7", "hyp": "b7", "human": None},
    {"lang_pair": "cs-en", "segment": 9, "system": "A", "ref": "r9", "hyp": "a9", "human": 3},
    {"lang_pair": "de-en", "segment": 7, "system": "A", "ref": "d7", "hyp": "da", "human": -2},
]


def write(path: Path, rows: Rows) -> Path:
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter="," if kind == "csv" else "\t")
            writer.writerow(rows[0])
            writer.writerows(row.values() for row in rows)
    return path


def same(judged: Judgements, expected: Judgements) -> None:
    """Both hold the same rows, whatever their names."""
    assert (judged.hyps, judged.refs, judged.system_names) == (
        expected.hyps,
        expected.refs,
        expected.system_names,
    )
    np.testing.assert_array_equal(judged.segments, expected.segments)
    np.testing.assert_array_equal(judged.systems, expected.systems)
    assert list(judged.human) == list(expected.human)
    for name, values in judged.human.items():
        np.testing.assert_array_equal(values, expected.human[name])


def test_a_row_is_a_text(tmp_path: Path) -> None:
    judged = read_judgements(write(tmp_path / "set.jsonl", RATED))
    assert judged.name == "set"
    assert len(judged) == 4
    assert judged.hyps == ("a7", "b7", "a9", "da")
    assert judged.refs == (("r7",), ("r7",), ("r9",), ("d7",))
    assert judged.segments.tolist() == [0, 0, 1, 2]  # 7 in another language is another input
    assert judged.systems.tolist() == [0, 1, 0, 2]
    assert judged.system_names == ("A", "B", "A")
    np.testing.assert_array_equal(judged.human["human"], [1.5, np.nan, 3, -2])
    assert judged.preferences is None
    assert judged.notes == ("1 of 4 rows have no rating of human",)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl.gz"])
def test_formats_agree(tmp_path: Path, ending: str) -> None:
    expected = read_judgements(write(tmp_path / "set.jsonl", RATED))
    judged = read_judgements(write(tmp_path / f"other.{ending}", RATED))
    assert judged.name == "other"
    same(judged, expected)


def test_criteria_in_objects_and_in_columns(tmp_path: Path) -> None:
    nested: Rows = [
        {"hyp": "a", "refs": ["x", "y"], "human": {"ease": 1, "sense": 2.5}},
        {"hyp": "b", "refs": ["z"], "human": {"ease": 3}},
    ]
    flat: Rows = [
        {"hyp": "a", "ref.1": "x", "ref.2": "y", "human.ease": 1, "human.sense": 2.5, "n": 4},
        {"hyp": "b", "ref.1": "z", "ref.2": "", "human.ease": 3, "human.sense": "", "n": 5},
    ]
    one = read_judgements(write(tmp_path / "nested.jsonl", nested))
    same(read_judgements(write(tmp_path / "flat.csv", flat)), one)
    same(read_judgements(write(tmp_path / "nested.parquet", nested)), one)
    assert one.refs == (("x", "y"), ("z",))
    assert one.notes == ("1 of 2 rows have no rating of sense", "sense is 2.5 everywhere")
    picked = read_judgements(tmp_path / "flat.csv", human=["n", "ease"])
    assert {name: values.tolist() for name, values in picked.human.items()} == {
        "n": [4, 5],
        "ease": [1, 3],
    }
    assert read_judgements(tmp_path / "flat.csv", human=()).human == {}


def test_selection(tmp_path: Path) -> None:
    judged = read_judgements(write(tmp_path / "set.jsonl", RATED))
    czech, german = judged.split()
    assert (czech.name, german.name) == ("set cs-en", "set de-en")
    assert czech.system_names == ("A", "B")
    assert german.segments.tolist() == german.systems.tolist() == [0]
    assert german.human["human"].tolist() == [-2]
    same(judged.only([0, 1, 2]), czech)
    same(judged.only(np.array([True, True, True, False])), czech)
    assert judged.only([3, 0]).hyps == ("da", "a7")
    same(read_judgements(tmp_path / "set.jsonl", where={"lang_pair": "cs-en"}), czech)
    plain = [{"hyp": row["hyp"], "ref": "r", "human": k} for k, row in enumerate(RATED)]
    alone = read_judgements(write(tmp_path / "plain.jsonl", plain))
    assert alone.split() == [alone]
    english = [{**row, "lang_pair": "en"} for row in plain]
    assert [x.name for x in read_judgements(write(tmp_path / "e.jsonl", english)).split()] == ["e"]
    assert alone.segments.tolist() == [0, 1, 2, 3]


NAMES = "segment", "ref", "better", "worse", "better_system", "worse_system"
PREFERENCES: Rows = [
    dict(zip(NAMES, cells, strict=True))
    for cells in (
        (1, "r", "a", "b", "A", "B"),
        (1, "r", "c", "a", "C", "A"),
        (2, "s", "a", "a", "A", "C"),
    )
]


def test_preferences_point_at_distinct_outputs(tmp_path: Path) -> None:
    judged = read_judgements(write(tmp_path / "darr.jsonl", PREFERENCES))
    assert judged.hyps == ("a", "b", "c", "a", "a")
    assert judged.segments.tolist() == [0, 0, 0, 1, 1]
    assert [judged.system_names[k] for k in judged.systems] == ["A", "B", "C", "A", "C"]
    assert judged.preferences is not None
    assert judged.preferences.tolist() == [[0, 1], [2, 0], [3, 4]]
    assert judged.human == {}
    assert judged.notes == ("in 1 of 3 preferences the two texts are the same",)
    less = judged.only([0, 2, 3])
    assert less.preferences is not None
    assert less.preferences.tolist() == [[1, 0]]


def test_preferences_need_no_names(tmp_path: Path) -> None:
    bare = [{k: row[k] for k in ("ref", "better", "worse")} for row in PREFERENCES]
    judged = read_judgements(write(tmp_path / "bare.csv", bare))
    assert judged.preferences is not None
    assert judged.preferences.tolist() == [[0, 1], [2, 3], [4, 4]]
    assert judged.segments.tolist() == [0, 0, 1, 1, 2]


OUTPUTS: Rows = [
    {"lang_pair": "cs-en", "segment": 1, "ref": "r", "outputs": {"A.1": "a", "B": "b", "C": None}},
    {"lang_pair": "cs-en", "segment": 2, "ref": "s", "outputs": {"A.1": "c", "B": "d", "C": "e"}},
]


def test_systems_as_wholes(tmp_path: Path) -> None:
    scores = [{"lang_pair": "cs-en", "system": "B", "da": 0.5}, {"system": "A.1", "da": -1}]
    scores += [{"system": "C", "da": 0}]
    scores += [{"lang_pair": "de-en", "system": "A.1", "da": 9}]
    (tmp_path / "news.human.json").write_text(json.dumps(scores))
    judged = read_judgements(write(tmp_path / "news.cs-en.jsonl", OUTPUTS))
    assert judged.hyps == ("a", "b", "c", "d", "e")
    assert judged.system_names == ("A.1", "B", "C")
    assert judged.system_human["da"].tolist() == [-1, 0.5, 0]
    assert judged.criterion() == "da"
    assert judged.notes == ()
    flat = [{**row, **{f"outputs.{k}": v for k, v in row["outputs"].items()}} for row in OUTPUTS]
    flat = [{k: v for k, v in row.items() if k != "outputs"} for row in flat]
    (tmp_path / "scores.csv").write_text("system,da\nB,0.5\nC,1\nD,\n")
    path = write(tmp_path / "other.parquet", flat)
    other = read_judgements(path, system_scores=tmp_path / "scores.csv")
    same(other, judged)
    assert np.isnan(other.system_human["da"][0])
    assert other.notes[0] == "scores.csv does not rate A.1"
    assert other.notes[1] == "scores.csv also rates D, without texts here"


@pytest.mark.parametrize("name", ["DAseg.{}.human.cs-en", "{}.cs-en.human"])
def test_parallel_files(tmp_path: Path, name: str) -> None:
    name = name.format("newstest2016")
    (tmp_path / name).write_text("0.5\n\n-1\n")
    (tmp_path / name.replace("human", "reference")).write_text("r1\nr2\nr3\n")
    (tmp_path / name.replace("human", "mt-system")).write_text("h1\nh2\nh3\n")
    (tmp_path / name.replace("human", "source")).write_text("s1\n")
    judged = read_judgements(tmp_path)
    assert judged.name == tmp_path.name
    assert judged.hyps == ("h1", "h2", "h3")
    assert set(judged.lang_pairs) == {"cs-en"}
    np.testing.assert_array_equal(judged.human["human"], [0.5, np.nan, -1])
    (tmp_path / name.replace("human", "mt-system")).write_text("h1\nh2\n")
    with pytest.raises(InvalidInput, match=r"mt-system.* has 2 lines but .*human.* has 3"):
        read_judgements(tmp_path)
    (tmp_path / name.replace("human", "mt-system")).unlink()
    with pytest.raises(InvalidInput, match="no mt-system file"):
        read_judgements(tmp_path)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package as WMT's metrics task had it."""
    outputs = tmp_path / "input/system-outputs/newstest2018/cs-en"
    outputs.mkdir(parents=True)
    (outputs / "newstest2018.uedin.55.cs-en").write_text("u1\nu2\n")
    (outputs / "newstest2018.online-A.0.cs-en").write_text("o1\no2\n")
    (tmp_path / "input/references").mkdir()
    (tmp_path / "input/references/newstest2018-csen-ref.en").write_text("r1\nr2\n")
    (tmp_path / "manual-evaluation").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "heading", ["LP SID BETTER WORSE", "LP DATA SID BETTER WORSE", "LP,DATA,SID,BETTER,WORSE"]
)
def test_wmt_preferences(package: Path, heading: str) -> None:
    table = package / "manual-evaluation/RR-seglevel.csv"
    rows = "cs-en newstest2018 2 uedin.55 online-A.0\ncs-en newstest2018 1 online-A.0 uedin.55\n"
    table.write_text(f"{heading}\n{rows.replace(' ', ',') if ',' in heading else rows}")
    (table.parent / "DA-syslevel.csv").write_text(
        "LP SYSTEM HUMAN\ncs-en uedin.55 0.25\ncs-en online-A.0 -0.5\n"
    )
    judged = read_judgements(table)
    assert judged.hyps == ("u2", "o2", "o1", "u1")
    assert judged.refs == (("r2",), ("r2",), ("r1",), ("r1",))
    assert judged.preferences is not None
    assert judged.preferences.tolist() == [[0, 1], [2, 3]]
    assert judged.system_names == ("uedin.55", "online-A.0")
    assert judged.system_human["human"].tolist() == [0.25, -0.5]
    same(read_judgements(table, texts=package / "input"), judged)
    with pytest.raises(InvalidInput, match="no lang_pair 'de-en'; there is cs-en"):
        read_judgements(table, where={"lang_pair": "de-en"})
    with table.open("a") as stream:
        stream.write(rows.splitlines()[0].replace(" 2 ", " 3 ") + "\n")
    with pytest.raises(InvalidInput, match=r"cells|asks for line 3 of .*cs-en, which has 2"):
        read_judgements(table)


def test_wmt_ratings(package: Path) -> None:
    table = package / "manual-evaluation/DA-seglevel.csv"
    table.write_text(
        "LP DATA SID SYSTEM HUMAN\n"
        "cs-en newstest2018 1 uedin.55+other 0.5\ncs-en newstest2018 2 online-A.0 -1.5\n"
    )
    judged = read_judgements(table)
    assert judged.hyps == ("u1", "o2")
    assert judged.human["human"].tolist() == [0.5, -1.5]
    with table.open("a") as stream:
        stream.write("cs-en newstest2018 2 nobody 1\n")
    with pytest.raises(InvalidInput, match=r"row 3 .* no file newstest2018.nobody.cs-en below"):
        read_judgements(table)


def changed(k: int, **new: Any) -> Rows:
    return [{**row, **(new if i == k else {})} for i, row in enumerate(RATED)]


MISTAKES: dict[str, tuple[Rows, str]] = {
    "a text": (changed(1, human="good"), "row 2 of .*: human is 'good', not a number"),
    "a written number": (changed(1, human="1.5"), "row 2 of .*: human is '1.5', not a number"),
    "a truth": (changed(1, human=True), "human is True, not a number"),
    "nan": (changed(2, human=float("nan")), "row 3 of .*: human is nan; leave it empty"),
    "infinity": (changed(2, human={"x": float("-inf")}), "row 3 of .*: x is -inf"),
    "constant": ([{**row, "human": 4} for row in RATED], "human is 4 everywhere"),
    "unrated": ([{**row, "human": {"x": None}} for row in RATED], "has no ratings"),
    "no column": ([{"hyp": "a", "ref": "b"}], "has no ratings; it has hyp, ref"),
    "other text": ([*RATED, {**RATED[0], "hyp": "x"}], "rows 1 and 5 .* different texts"),
    "other rating": ([*RATED, {**RATED[2], "human": 1}], "rows 3 and 5 .*9 of system A.*rating"),
    "no hyp": ([{"ref": "a", "human": 1}], "row 1 of .* has no column 'hyp'"),
    "no ref": (changed(1, ref=None), "row 2 of .*: ref is None, not a text"),
    "no refs": ([{"hyp": "a", "refs": [], "human": 1}], "row 1 of .* has no reference"),
    "empty": ([], "has no rows"),
    "segment": (changed(0, segment=[1]), r"row 1 of .*: segment is \[1\], no name"),
    "outputs": ([{"ref": "a", "outputs": "b"}], "row 1 of .*: outputs is no {system: text}"),
    "better": ([{"ref": "a", "better": "b"}], "row 1 of .* has no column 'worse'"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(tmp_path: Path, mistake: str) -> None:
    rows, message = MISTAKES[mistake]
    with pytest.raises(InvalidInput, match=message) as raised:
        read_judgements(write(tmp_path / "set.jsonl", rows))
    assert "\n" not in str(raised.value)


def test_choices_that_are_not_there(tmp_path: Path) -> None:
    rows = [{**row, "human": {"x": k, "y": k}} for k, row in enumerate(RATED)]
    path = write(tmp_path / "set.jsonl", rows)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"human": ["z"]}, "no criterion 'z'; there is x, y"),
        ({"where": {"part": "abs"}}, "no column 'part'; it has lang_pair, segment"),
        ({"where": {"segment": 8}}, "no rows where segment is 8; it is 7, 9"),
        ({"system_scores": tmp_path / "no.json"}, "there is no file .*no.json"),
    ]
    for options, message in cases:
        with pytest.raises(InvalidInput, match=message):
            read_judgements(path, **options)
    judged = read_judgements(path)
    assert judged.criterion("y") == "y"
    for name, message in ((None, "several criteria; name one of x, y"), ("z", "no criterion 'z'")):
        with pytest.raises(InvalidInput, match=message):
            judged.criterion(name)
    with pytest.raises(InvalidInput, match="only preferences"):
        read_judgements(write(tmp_path / "darr.jsonl", PREFERENCES), human=["x"])
    for name in ("set.pkl", "set.txt"):
        (tmp_path / name).write_text("x")
        with pytest.raises(InvalidInput, match=r"no table; a judgement set ends in .csv"):
            read_judgements(tmp_path / name)
    with pytest.raises(InvalidInput, match="there is no file"):
        read_judgements(tmp_path / "nowhere.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidInput, match="has no files of judgements"):
        read_judgements(tmp_path / "folder")


def test_a_wmt_table_of_systems_alone_is_no_set(tmp_path: Path) -> None:
    (tmp_path / "DA-syslevel.csv").write_text("LP SYSTEM HUMAN\ncs-en A 1\n")
    with pytest.raises(InvalidInput, match="has LP SYSTEM HUMAN; it needs LP DATA SID"):
        read_judgements(tmp_path / "DA-syslevel.csv")


def test_twice_the_same_counts_once(tmp_path: Path) -> None:
    judged = read_judgements(write(tmp_path / "set.jsonl", [*RATED, RATED[0]]))
    assert len(judged) == 4
    assert judged.notes[0] == "1 rows are repeated and count once"


def test_bad_system_scores(tmp_path: Path) -> None:
    path, scores = write(tmp_path / "set.jsonl", OUTPUTS), tmp_path / "scores.json"
    for content, message in (
        ("{", "scores.json is not JSON"),
        ("{}", "is no JSON list"),
        ('[{"da": 1}]', "entry 1 of .* names no system"),
        ('[{"system": "B", "da": "high"}]', "entry 1 of .*: da is 'high', not a number"),
        ('[{"system": "B", "da": 1}, {"system": "B", "da": 2}]', "rates B twice"),
        ('[{"system": "Z", "da": 1}]', "rates none of the systems of set"),
        ('[{"system": "A.1", "da": 1}, {"system": "B", "da": 1}]', "da is 1 everywhere"),
    ):
        scores.write_text(content)
        with pytest.raises(InvalidInput, match=message):
            read_judgements(path, system_scores=scores)


SIZES = {
    "wmt15-da": (2500, 2500, 5, 0),
    "wmt17-da": (4934, 4493, 189, 0),
    "realsumm": (2500, 100, 25, 0),
    "webnlg2020-en": (2848, 178, 16, 0),
    "flickr8k-expert": (5664, 1000, 972, 0),
    "wrdscore": (150, 150, 3, 0),
    "wmt18-darr.et-en": (21939, 1973, 14, 56721),
    "wmt18-darr.cs-en": (5958, 1706, 5, 5110),
    "wmt18-darr.tr-en": (9004, 2186, 5, 8525),
    "wmt18-darr.en-cs": (5439, 1222, 5, 5413),
    "wmt18-systems.et-en": (28000, 2000, 14, 0),
    "wmt18-systems.cs-en": (14915, 2983, 5, 0),
}


@pytest.mark.parametrize("name", SIZES)
def test_real_sets(data: Path, name: str) -> None:
    judged = read_judgements(data / f"data/{name}.jsonl.gz")
    pairs = 0 if judged.preferences is None else len(judged.preferences)
    sizes = len(judged), len(set(judged.segments)), len(judged.system_names), pairs
    assert sizes == SIZES[name]
    if "systems" in name:
        assert np.isfinite(judged.system_human["da_z"]).all()
    parts = judged.split()
    assert sum(len(part) for part in parts) == len(judged)
    assert len({part.name for part in parts}) == len(parts)


def test_real_columns(data: Path) -> None:
    abstractive = read_judgements(data / "data/realsumm.jsonl.gz", where={"part": "abs"})
    assert (len(abstractive), len(abstractive.system_names)) == (1400, 14)
    webnlg = read_judgements(data / "data/webnlg2020-en.jsonl.gz")
    assert {"correctness", "data_coverage", "relevance", "fluency", "text_structure"} <= set(
        webnlg.human
    )
    assert webnlg.notes[0].startswith("1 of 2848 rows have no rating of correctness, data_coverage")
    assert {len(refs) for refs in webnlg.refs} > {1, 3}
    wmt = read_judgements(data / "data/wmt17-da.jsonl.gz").split()
    assert [part.name for part in wmt][:2] == ["wmt17-da cs-en", "wmt17-da de-en"]
    darr = read_judgements(data / "data/wmt18-darr.cs-en.jsonl.gz")
    assert darr.preferences is not None
    better, worse = darr.preferences[0]
    assert darr.hyps[better] == "Civil rights movement issues travel alert for Missouri"
    assert darr.system_names[darr.systems[worse]] == "online-B.0"
    assert (darr.segments[darr.preferences[:, 0]] == darr.segments[darr.preferences[:, 1]]).all()


BY_RATERS: Rows = [
    {"hyp": "a b", "ref": "a c", "human": {"adequacy": 1, "fluency": 2}, "ratings": 3},
    {"hyp": "a d", "ref": "a e", "human": {"adequacy": 2, "fluency": 1}, "ratings": 1},
]


def test_a_set_to_train_on_has_the_number_of_raters(tmp_path: Path) -> None:
    path = write(tmp_path / "rated.jsonl", BY_RATERS)
    judged = read_ratings(path, ["fluency"])
    assert {name: x.tolist() for name, x in judged.human.items()} == {
        "fluency": [2, 1],
        "ratings": [3, 1],
    }
    every = read_ratings(path)
    assert list(every.human) == ["adequacy", "fluency", "ratings"]
    assert list(read_ratings(path, raters="fluency").human) == ["adequacy", "fluency"]
    one = write(tmp_path / "one.jsonl", [{**row, "ratings": 2} for row in BY_RATERS])
    assert list(read_ratings(one).human) == ["adequacy", "fluency"]
    inside = [{**row, "human": {"score": k, "ratings": k}} for k, row in enumerate(BY_RATERS)]
    both = read_ratings(write(tmp_path / "inside.jsonl", inside), ["score"])
    assert list(both.human) == ["score", "ratings"]


def test_preferences_are_trained_on_whatever_the_criteria(tmp_path: Path) -> None:
    pair = {"ref": "a b", "better": "a b", "worse": "c d"}
    judged = read_ratings(write(tmp_path / "pairs.jsonl", [pair]), ["fluency"])
    assert judged.preferences is not None
    assert not judged.human


@pytest.mark.parametrize(
    ("human", "raters", "message"),
    [
        (["fluencey"], None, "no criterion 'fluencey'; did you mean fluency? there is adequacy,"),
        (None, "rating", "no criterion 'rating'; did you mean ratings? there is adequacy"),
        (["same"], None, "same is 5 everywhere; there is nothing to agree with"),
    ],
)
def test_ratings_that_cannot_be_trained_on(
    tmp_path: Path, human: list[str] | None, raters: str | None, message: str
) -> None:
    rows = [{**row, "same": 5} for row in BY_RATERS]
    with pytest.raises(InvalidInput) as error:
        read_ratings(write(tmp_path / "rated.jsonl", rows), human, raters)
    assert message in str(error.value)


def test_texts_that_leak_into_a_test_set_are_named(tmp_path: Path) -> None:
    train = read_ratings(write(tmp_path / "train.jsonl", BY_RATERS))
    pairs = [{"ref": "a  c", "better": "a b ", "worse": "x"}]
    leaking = read_ratings(write(tmp_path / "test.jsonl", pairs))
    with pytest.raises(InvalidInput, match=r"1 texts of the test set test are in train .*'a b'"):
        check_leaks([train], [leaking])
    same_ref = [{"ref": "a c", "better": "another", "worse": "x"}]
    check_leaks([train], [read_ratings(write(tmp_path / "other.jsonl", same_ref))])
