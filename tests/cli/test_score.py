"""`freight score` as a user runs it, mistakes included."""

import csv
import gzip
import json
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import freight
from freight.cli import app, main
from freight.errors import UntunedLayer
from sharing import need_encoder

HYPS, REFS = ["the cat sat", "", "a dog 🦖"], ["a cat sat down", "", "the dog"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "hyp.txt").write_text("\n".join(HYPS) + "\n", encoding="utf-8")
    (tmp_path / "ref.txt").write_text("\r\n".join(REFS), encoding="utf-8")
    with gzip.open(tmp_path / "ref.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(HYPS) + "\n")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> int:
    """Run the program itself, in the folder; its exit status."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["freight", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def test_warnings_of_ours_are_one_line(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    assert run(monkeypatch, files, "version") == 0
    for kind in (UntunedLayer, FutureWarning):
        assert warnings.formatwarning("so it is", kind, "a.py", 1) == "freight: so it is\n"
    assert "a.py:1: RuntimeWarning" in warnings.formatwarning("no", RuntimeWarning, "a.py", 1)


def test_json_says_what_python_says(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(
        monkeypatch, files, "score", "hyp.txt", "ref.txt", "-m", "lazy-emd", "-m", "bert-score",
        "--encoder", "hashed", "--json",
    )  # fmt: skip
    assert status == 0
    whole = json.loads(capsys.readouterr().out)
    records = whole["metrics"]
    for record, name in zip(records, ("lazy-emd", "bert-score"), strict=True):
        expected = freight.load(name, encoder="hashed").score(HYPS, REFS)
        assert record["metric"] == name
        assert record["signature"] == expected.signature
        assert record["flags"] == [[flag.record for flag in f] for f in expected.flags]
        assert record["scores"] == {c: expected[c].tolist() for c in expected.segments}
        assert record["system"] == pytest.approx(expected.system)
    assert {"read", "load", "fit", "score"} == set(whole["timings"])


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet"])
def test_files_by_their_ending(
    files: Path, monkeypatch: pytest.MonkeyPatch, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = files / f"scores.{ending}"
    arguments = ["hyp.txt", "ref.txt", "ref.gz", "-m", "emd:transport", "--encoder", "hashed"]
    assert run(monkeypatch, files, "score", *arguments, "-o", str(out)) == 0
    assert "transport↓" in capsys.readouterr().out
    if ending == "parquet":
        table = pyarrow.parquet.read_table(out)
        rows = table.to_pylist()
        assert b"emd" in table.schema.metadata
    elif ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        header, *lines = out.read_text().splitlines()
        cells = "," if ending == "csv" else "\t"
        rows = [dict(zip(header.split(cells), line.split(cells), strict=True)) for line in lines]
    assert [float(row["emd:transport"]) for row in rows] == pytest.approx([0, 0, 0], abs=1e-6)
    assert [int(row["emd:reference"]) for row in rows] == [2, 1, 2]  # from 1, as segments
    assert "emd:objective" not in rows[0]


def test_systems_are_compared(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "far.txt").write_text("a b c\nd\ne f\n")
    arguments = ["hyp.txt", "ref.txt", "--against", "far.txt", "-m", "emd", "--encoder", "hashed"]
    assert run(monkeypatch, files, "score", *arguments, "-o", "scores.csv", "-o", "page.html") == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("hyp", "far", "95 % interval", "written: page.html"))
    assert "emd transport↓" in (files / "page.html").read_text(encoding="utf-8")
    with (files / "scores.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["segment"], row["system"]) for row in rows[:3]] == [
        ("1", "hyp"), ("1", "far"), ("2", "hyp"),
    ]  # fmt: skip
    assert run(monkeypatch, files, "score", *arguments, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["system"] == ["hyp", "far"] * 3
    systems = whole["metrics"][0]["systems"]["transport"]
    alone = freight.load("emd", encoder="hashed").score(HYPS, REFS)
    assert systems["hyp"]["score"] == pytest.approx(alone.system["transport"])
    assert systems["hyp"]["low"] <= systems["hyp"]["score"] <= systems["hyp"]["high"]
    assert 0 < systems["hyp"]["p"]["far"] <= 1


@pytest.mark.parametrize(("lines", "title"), [(1, "1 segment"), (2, "2 segments")])
def test_the_title_of_the_table_counts_segments(
    lines: int,
    title: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("hyp.txt", "ref.txt"):
        (tmp_path / name).write_text("a b\n" * lines, encoding="utf-8")
    assert run(monkeypatch, tmp_path, "score", "hyp.txt", "ref.txt", "-m", "chrf") == 0
    assert capsys.readouterr().out.splitlines()[0].strip() == title


def test_flags_are_counted_by_segment_and_name_their_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hyps, refs = ["🦖 a", "🦖 🦖", "🦖", "a"], ["🦖 a", "🦕", "🦕 b", ""]
    for name, lines in (("hyp.txt", hyps), ("ref.txt", refs)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run(monkeypatch, tmp_path, "score", "hyp.txt", "ref.txt", "-m", "emd") == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if " of 4 segments: " in line]
    assert shown == [
        "emd: 1 of 4 segments: empty side (ref)",
        "emd: 3 of 4 segments: unknown units (hyp)",
        "emd: 3 of 4 segments: unknown units (ref)",
    ]
    assert run(monkeypatch, tmp_path, "score", "hyp.txt", "ref.txt", "-m", "emd", "--json") == 0
    flags = json.loads(capsys.readouterr().out)["metrics"][0]["flags"]
    assert flags[3] == [{"kind": "empty side", "side": "ref", "share": None}]
    assert {"kind": "unknown units", "side": "hyp", "share": 0.5} in flags[0]
    run(monkeypatch, tmp_path, "score", "hyp.txt", "ref.txt", "-m", "emd", "-o", "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "unknown units (ref)" in page
    assert "empty side (ref)" in page


def test_a_page_says_what_was_asked_for(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = "-m", "lazy-emd:objective", "-m", "bleu", "--encoder", "hashed", "--explain", "1"
    arguments = "score", "hyp.txt", "ref.txt", "ref.gz", *metrics, "-o", "page.html"
    assert run(monkeypatch, files, *arguments) == 0
    page = (files / "page.html").read_text(encoding="utf-8")
    assert "lazy-emd objective↓" in page
    assert "lazy-emd transport↓" not in page
    assert page.count("data-key=") == 2  # the worst and the best by lazy-emd; bleu has no plan


MISTAKES = {
    "no file": (["nowhere.txt", "ref.txt"], "there is no file nowhere.txt"),
    "lengths": (["hyp.txt", "short.txt"], "hyp.txt has 3 segments but short.txt has 1"),
    "empty": (["empty.txt", "ref.txt"], "empty.txt is empty"),
    "encoding": (
        ["latin.txt", "latin.txt"],
        "line 2 of latin.txt is not utf-8 (byte 0xe9); re-encode",
    ),
    "no encoding": (
        ["hyp.txt", "ref.txt", "--encoding", "utf-99"],
        "there is no encoding 'utf-99'",
    ),
    "metric": (["hyp.txt", "ref.txt", "-m", "bertscore"], "did you mean bert-score"),
    "column": (["hyp.txt", "ref.txt", "-m", "emd:f1", "--encoder", "hashed"], "no column 'f1'"),
    "parameter": (["hyp.txt", "ref.txt", "--set", "speed=1"], "no parameter 'speed'"),
    "value": (["hyp.txt", "ref.txt", "--set", "hyp"], "--set hyp=0.5"),
    "layer": (["hyp.txt", "ref.txt", "--layer", "12"], "layer 12 is out of range"),
    "ending": (["hyp.txt", "ref.txt", "-o", "scores.xls"], "ends in none of .jsonl"),
    "no page": (["hyp.txt", "ref.txt", "-o", "no/page.html"], "there is no folder no"),
    "folder": (["hyp.txt", "ref.txt", "-o", "no/scores.csv"], "there is no folder no"),
    "encoder": (["hyp.txt", "ref.txt", "--encoder", "./no"], "there is no folder no"),
    "hub": (["hyp.txt", "ref.txt", "--encoder", "no/model"], "could not be loaded"),
    "stdin twice": (["-", "-"], "read once"),
    "one file": (["hyp.txt"], "hyp.txt has no references; give a file of them, or a table"),
    "missing column": (["odd.csv"], "has no column 'hyp'; it has a, b; say which to take with"),
    "null": (["null.jsonl"], "row 2 of null.jsonl: hyp is None, not a text"),
    "nan": (["nan.jsonl"], "row 1 of nan.jsonl: ref is nan, not a text"),
    "ragged": (["ragged.csv"], "line 3 of ragged.csv has 1 cells, the heading 2"),
    "not json": (["bad.jsonl"], "line 1 of bad.jsonl is not JSON"),
    "not parquet": (["bad.parquet"], "bad.parquet is not a whole Parquet file"),
    "not gzip": (["bad.csv.gz"], "bad.csv.gz is not a whole gzip file"),
    "only a heading": (["heading.tsv"], "heading.tsv is empty"),
    "twice a column": (["twice.csv"], "twice.csv has two columns named 'hyp'"),
    "no reference": (["none.jsonl"], "row 1 of none.jsonl has no reference"),
    "number": (
        ["hyp.txt", "ref.txt", "-m", "lazy-emd", "--set", "hyp=much"],
        "hyp='much' of lazy-emd: must be a number, 0 or more",
    ),
    "preset": (
        ["hyp.txt", "ref.txt", "-m", "lazy-emd", "--preset", "mine"],
        "no preset 'mine'; there is paper, authors, exact",
    ),
    "other metric": (
        ["hyp.txt", "ref.txt", "--set", "emd.layer=2", "--encoder", "hashed"],
        "--set emd.layer: emd is not among the metrics of this run",
    ),
    "device": (
        ["hyp.txt", "ref.txt", "--encoder", "hashed", "--device", "cuda"],
        "hashed has no option device; there is",
    ),
}


BAD_TABLES = {
    "odd.csv": b"a,b\n1,2\n",
    "null.jsonl": b'{"hyp": "a", "ref": "b"}\n{"hyp": null, "ref": "b"}\n',
    "nan.jsonl": b'{"hyp": "a", "ref": NaN}\n',
    "ragged.csv": b"hyp,ref\na,b\nc\n",
    "bad.jsonl": b"hyp,ref\n",
    "bad.parquet": b"PAR1 and no more",
    "bad.csv.gz": b"not compressed",
    "heading.tsv": b"hyp\tref\n",
    "twice.csv": b"hyp,hyp\na,b\n",
    "none.jsonl": b'{"hyp": "a", "refs": []}\n',
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(
    mistake: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "short.txt").write_text("one line\n")
    (files / "empty.txt").write_text("")
    (files / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    for name, content in BAD_TABLES.items():
        (files / name).write_bytes(content)
    arguments, message = MISTAKES[mistake]
    assert run(monkeypatch, files, "score", *arguments) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert not [path for path in files.iterdir() if path.name.startswith("scores")]


@pytest.mark.parametrize(
    ("metrics", "note"),
    [
        (["-m", "chrf"], "--lang zh makes no difference to chrf\n"),
        (["-m", "chrf", "-m", "ter"], "--lang zh makes no difference to chrf, ter\n"),
        (["-m", "freight", "-m", "lazy-emd", "--encoder", "hashed"], ""),
    ],
)
def test_a_language_is_for_the_metrics_that_know_languages(
    metrics: list[str],
    note: str,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoken = "--lang", "zh", "--json"
    assert run(monkeypatch, files, "score", "hyp.txt", "ref.txt", *metrics, *spoken) == 0
    captured = capsys.readouterr()
    assert captured.err == note
    for record in json.loads(captured.out)["metrics"]:
        known = {"lang": "zh"} if "lang" in freight.parameters(record["metric"]) else {}
        expected = freight.load(
            record["metric"], **({} if note else {"encoder": "hashed"}), **known
        )
        assert record["signature"] == expected.signature


def test_usage_is_status_two() -> None:
    assert CliRunner().invoke(app, ["score"]).exit_code == 2
    assert CliRunner().invoke(app, ["score", "a", "b", "--nonsense"]).exit_code == 2


def test_lists() -> None:
    for command, word in (
        ("metrics", "bary-score"),
        ("encoders", "embedded"),
        ("version", "freight"),
    ):
        result = CliRunner().invoke(app, [command])
        assert result.exit_code == 0
        assert word in result.output


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys; sys.argv = ['freight', '--help']\n"
        "from freight.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "score" in done.stdout


def test_standard_input(files: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from freight.cli import main; main()",
        "score",
        "-",
        "ref.txt",
    ]
    done = subprocess.run(
        [*command, "--encoder", "hashed", "--json"],
        input="\n".join(HYPS).encode(),
        capture_output=True,
        cwd=files,
        check=True,
    )
    assert len(json.loads(done.stdout)["metrics"][0]["references"]) == 3


def test_settings_go_where_they_are_known(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["hyp.txt", "ref.txt", "-m", "lazy-emd:objective", "-m", "bary-score", "--json"]
    arguments += ["--encoder", "hashed", "--layer=-2:", "--set", "hyp=0.5"]
    arguments += ["--set", "bary-score.epsilon=0.1", "--threads", "1"]
    assert run(monkeypatch, files, "score", *arguments) == 0
    lazy, bary = json.loads(capsys.readouterr().out)["metrics"]
    assert list(lazy["scores"]) == ["objective"]
    assert "layers:3,4|" in lazy["signature"]
    assert "Problem(hyp=0.5,ref=0.31,epsilon=0.009)" in lazy["signature"]
    assert "epsilon=0.1" in bary["signature"]


def test_idf_of_a_pipe_is_fitted_in_a_first_pass(files: Path) -> None:
    command = [sys.executable, "-c", "from freight.cli import main; main()", "score", "hyp.txt"]
    options = ["-", "-m", "yisi-1", "--encoder", "hashed", "--json"]
    texts = "\n".join(REFS).encode()
    done = subprocess.run(
        [*command, *options], input=texts, capture_output=True, cwd=files, check=True
    )
    record = json.loads(done.stdout)["metrics"][0]
    expected = freight.load("yisi-1", encoder="hashed").score(HYPS, REFS)
    assert record["scores"]["f"] == expected["f"].tolist()
    assert record["signature"] == expected.signature
    assert not done.stderr


def test_a_cache_changes_no_score(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(files / "cache"))
    arguments = ["hyp.txt", "ref.txt", "--encoder", "hashed", "-m", "emd", "--json"]
    outputs = []
    for extra in ([], ["--cache"], ["--cache"]):
        assert run(monkeypatch, files, "score", *arguments, *extra) == 0
        outputs.append(json.loads(capsys.readouterr().out)["metrics"])
    assert outputs[0] == outputs[1] == outputs[2]
    assert run(monkeypatch, files, "cache", "info") == 0
    assert "texts" in capsys.readouterr().out


def test_a_run_that_fails_leaves_nothing(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise freight.FreightError("no more")

    (files / "scores.csv").write_text("from before")
    monkeypatch.setattr("freight.cli.results.ScoreSummary.add", fail)
    arguments = ["hyp.txt", "ref.txt", "--encoder", "hashed", "-o", "scores.csv"]
    assert run(monkeypatch, files, "score", *arguments) == 1
    assert (files / "scores.csv").read_text() == "from before"
    assert not list(files.glob("*.part"))


def test_critical_differences_are_counted_and_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hyp.txt").write_text("Take 10 mg.\nAll is well.\nIt is not so.\n")
    (tmp_path / "ref.txt").write_text("Take 100 mg.\nAll is well.\nIt is so.\n")
    score = "score", "hyp.txt", "ref.txt", "-m", "chrf"
    assert run(monkeypatch, tmp_path, *score) == 0
    plain = capsys.readouterr().out
    note = "critical differences in 2 of 3 segments: number differs (1), negation differs (1);"
    assert note in " ".join(plain.split())
    assert "Critical differences" not in plain
    assert run(monkeypatch, tmp_path, *score, "--critical") == 0
    listed = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in listed.splitlines()]
    assert ["1", "number differs", "10", "100"] in rows
    assert ["3", "negation differs", "not", ""] in rows
    assert run(monkeypatch, tmp_path, *score, "--json") == 0
    flags = json.loads(capsys.readouterr().out)["metrics"][0]["flags"]
    difference = {"kind": "number differs", "side": None, "share": None}
    assert flags[0] == [{**difference, "hyp": [5, 7], "ref": [5, 8]}]
    assert flags[1] == []
    assert run(monkeypatch, tmp_path, *score, "--critical", "-o", "out/") == 1
    assert "keeps no scores in memory" in capsys.readouterr().err


def test_the_system_of_a_critical_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, number in (("a", 10), ("b", 12), ("ref", 10)):
        (tmp_path / f"{name}.txt").write_text(f"All is well.\nTake {number} mg.\n")
    files = "compare", "ref.txt", "a.txt", "b.txt"
    assert run(monkeypatch, tmp_path, *files, "-m", "chrf", "--critical") == 0
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines()]
    assert [" 2 ", " b ", " number differs ", " 12 ", " 10 "] in [
        [f" {cell.strip()} " for cell in row] for row in rows
    ]


def test_texts_and_columns_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "id": 7,
            "prediction": "a cat",
            "gold": ["the cat", "b"],
            "domain": "news",
            "segment": "x",
        },
        {"id": 8, "prediction": "a dog", "gold": ["the dog", "b"], "votes": {"up": 2}},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = ["score", "in.jsonl", "-m", "chrf", "--keep"]
    for name in ("out.jsonl", "out.csv", "out.parquet"):
        assert run(monkeypatch, tmp_path, *kept, "-o", name) == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    for given, written in zip(rows, map(json.loads, lines), strict=True):
        for name in ("id", "prediction", "gold", "domain", "votes", "segment"):
            assert written[name] == given.get(name)
        assert written["chrf:score"] > 0
    with (tmp_path / "out.csv").open(newline="") as stream:
        cells = list(csv.DictReader(stream))
    assert cells[0]["gold"] == '["the cat", "b"]'
    assert cells[1]["votes"] == '{"up": 2}'
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["id"] for row in table] == [7, 8]
    assert [row["gold"] for row in table] == [row["gold"] for row in rows]
    assert run(monkeypatch, tmp_path, *kept) == 1
    assert "--keep is for scores that are written" in capsys.readouterr().err


def test_a_column_with_the_name_of_ours_is_kept_under_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heading = "segment,flags,flags (given),chrf:score,response,ground_truth"
    (tmp_path / "in.csv").write_text(f"{heading}\nq,mine,older,5,a b,a b\n")
    arguments = "score", "in.csv", "-m", "chrf", "--keep", "-o", "out.jsonl"
    assert run(monkeypatch, tmp_path, *arguments) == 0
    (row,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (row["segment"], row["chrf:score"], row["flags"]) == ("q", 100, [])
    assert row["chrf:score (given)"] == "5"
    assert {row["flags (given)"], row["flags (given) (given)"]} == {"mine", "older"}


def test_lines_of_text_are_kept_too(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["score", "hyp.txt", "ref.txt", "-m", "chrf", "-o", "out.jsonl", "--keep"]
    assert run(monkeypatch, files, *given) == 0
    rows = [json.loads(line) for line in (files / "out.jsonl").read_text().splitlines()]
    assert [(row["segment"], row["hyp"], row["ref"]) for row in rows] == [
        (k, *pair) for k, pair in enumerate(zip(HYPS, REFS, strict=True), 1)
    ]


def test_an_id_is_always_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.csv").write_text("id,hyp,ref,note\na1,the cat,a cat,x\n")
    assert run(monkeypatch, tmp_path, "score", "in.csv", "-m", "chrf", "-o", "out.csv") == 0
    heading, row = (tmp_path / "out.csv").read_text().splitlines()
    assert heading.split(",")[:2] == ["segment", "id"]
    assert row.split(",")[:2] == ["1", "a1"]
    assert "note" not in heading


GATES = {
    ("--fail-under", "10"): (0, ""),
    ("--fail-under", "90"): (3, "freight: failed: chrf:score is 35.3981, under 90"),
    ("--fail-under", "ter:score:20"): (3, "freight: failed: ter:score is 66.6667, over 20"),
    ("--fail-under", "ter:100"): (0, ""),
    ("--fail-under-segment", "50"): (3, "chrf:score is under 50 in 2 of 3: 1, 3"),
    ("--fail-under", "bleu:3"): (1, "--fail-under bleu: scored is chrf, ter"),
    ("--fail-under", "high"): (1, "--fail-under high: 'high' is not a number"),
    ("--fail-under", "chrf:f1:3"): (1, "chrf has no column 'f1'; there is score"),
}


@pytest.mark.parametrize("given", GATES, ids=" ".join)
def test_a_gate(
    files: Path,
    given: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, line = GATES[given]
    arguments = ["score", "hyp.txt", "ref.txt", "-m", "chrf", "-m", "ter", *given]
    assert run(monkeypatch, files, *arguments) == status
    shown = capsys.readouterr()
    assert line in shown.err
    assert bool(shown.out) == (status != 1), "the table is there either way"


def test_a_gate_names_the_system(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "good.txt").write_text("\n".join(REFS) + "\n", encoding="utf-8")
    both = ["score", "ref.txt", "-i", "good.txt", "hyp.txt", "-m", "chrf", "--fail-under", "90"]
    assert run(monkeypatch, files, *both) == 3
    [line] = [line for line in capsys.readouterr().err.splitlines() if "failed" in line]
    assert line.startswith("freight: failed: hyp: chrf:score is ")


def test_a_run_into_a_folder_has_a_gate(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_into = ["score", "hyp.txt", "ref.txt", "-m", "chrf", "-o", "out/"]
    assert run(monkeypatch, files, *run_into, "--fail-under", "90") == 3
    assert "failed: chrf:score is" in capsys.readouterr().err
    assert run(monkeypatch, files, *run_into, "--fail-under-segment", "90") == 1


def test_the_workflow_fails_when_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of the workflow among the examples, on good, bad and partly bad outputs."""
    need_encoder("embedded")
    examples = Path(__file__).parents[2] / "examples"
    workflow = (examples / "quality.yml").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"bin/freight (score .*)", workflow)
    good = (examples / "hyp.txt").read_text().splitlines()
    (tmp_path / "references.txt").write_text((examples / "ref.txt").read_text())
    for outputs, status in (
        (good, 0),
        (["Something else entirely."] * len(good), 3),
        ([*good[:2], "qwerty", *good[3:]], 3),
    ):
        (tmp_path / "outputs.txt").write_text("\n".join(outputs) + "\n")
        assert run(monkeypatch, tmp_path, *shlex.split(command)) == status
        assert ("freight: failed: " in capsys.readouterr().err) == (status == 3)
        assert (tmp_path / "report.html").is_file()
