"""Error spans: whole words, their severity, and the forms in which they are written."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import freight
from freight.cli import app
from freight.data.judgement_files import read_annotations
from freight.errors import InvalidInput
from freight.explain.spans import ErrorSpan, SegmentErrors, json_lines, tab_separated


@pytest.fixture(scope="module")
def metric() -> Any:
    return freight.load("freight")


def error_spans(metric: Any, hyp: str, ref: str) -> list[tuple[str, str, str, str]]:
    spans = metric.spans(hyp, ref)
    for one in spans:
        assert one.text == {"hyp": hyp, "ref": ref}[one.side][one.start : one.end]
    return [(one.side, one.text, one.kind, one.severity) for one in spans]


def test_a_text_is_no_error_of_itself(metric: Any) -> None:
    for text in ("The young man in a slicker.", "Take 10 mg.", "no", "你好，世界。"):
        assert metric.spans(text, text) == ()


@pytest.mark.parametrize(
    ("hyp", "ref", "error"),
    [
        ("Lyon is the capital of France.", "Paris is the capital of France.", "Lyon"),
        ("Paris is not the capital of France.", "Paris is the capital of France.", "not"),
        ("Take 10 mg a day.", "Take 100 mg a day.", "10"),
    ],
)
def test_what_differs_critically_is_a_major_error(
    metric: Any, hyp: str, ref: str, error: str
) -> None:
    (span,) = error_spans(metric, hyp, ref)
    assert (span[0], span[1], span[3]) == ("hyp", error, "major")


def test_spans_and_names_are_whole_words(metric: Any) -> None:
    for name in ("freight", "lazy-emd", "emd", "bert-score"):
        explained = freight.load(name).explain("The boy in a coat.", "The young man in a slicker.")
        words = {"The", "boy", "in", "a", "coat", "young", "man", "slicker"}
        named = *explained.additions, *explained.omissions, *explained.worst_words
        for phrase in (*named, *(one.text for one in explained.spans)):
            assert {*phrase.split()} <= words, (name, phrase)
    spans = error_spans(metric, "He wore a slicker.", "He wore a.")
    assert [one[1] for one in spans] == ["slicker"]


def test_what_is_missing_is_a_span_of_the_reference(metric: Any) -> None:
    spans = error_spans(metric, "The old man sat.", "The old man sat, whistling cheerfully.")
    assert [(side, text, kind) for side, text, kind, _ in spans] == [
        ("ref", "whistling cheerfully", "missing")
    ]
    spans = error_spans(metric, "The old man sat, whistling cheerfully.", "The old man sat.")
    assert [(side, kind) for side, _, kind, _ in spans] == [("hyp", "added")]


def test_words_that_both_have_are_no_errors(metric: Any) -> None:
    spans = error_spans(metric, "A violin plays in the THEATRE.", "In the theatre a trumpet plays.")
    assert [(side, text, kind) for side, text, kind, _ in spans] == [("hyp", "violin", "wrong")]


def test_the_forms_that_spans_are_written_in() -> None:
    span = ErrorSpan("hyp", 5, 7, "major", "wrong", "10")
    errors = [SegmentErrors("1", "a", 1, [span]), SegmentErrors("2", "a", 2, [])]
    assert list(tab_separated(errors)) == [
        "segment\tsystem\tstart\tend\tseverity\tside",
        "1\ta\t5\t7\tmajor\thyp",
    ]
    lines = [json.loads(line) for line in json_lines(errors)]
    assert lines[0]["spans"][0] == {
        "side": "hyp", "start": 5, "end": 7, "severity": "major", "kind": "wrong", "text": "10",
    }  # fmt: skip
    assert lines[1] == {"segment": "2", "system": "a", "reference": 2, "spans": []}
    (odd,) = json_lines(
        [SegmentErrors("1", "", 1, [ErrorSpan("hyp", 0, 1, "minor", "added", "\ud800")])]
    )
    assert odd.encode()


def test_at_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["explain", *arguments, "--encoder", "hashed"])
        assert result.exit_code == 0, result.output
        return result.stdout

    texts = "Take 10 mg.", "Take 100 mg."
    assert run(*texts, "--spans").splitlines()[1] == "1\t\t5\t7\tmajor\thyp"
    assert json.loads(run(*texts, "--spans", "--json"))["spans"][0]["text"] == "10"
    (tmp_path / "a.txt").write_text("All is well.\nTake 10 mg.\n")
    (tmp_path / "ref.txt").write_text("All is well.\nTake 100 mg.\n")
    files = str(tmp_path / "a.txt"), str(tmp_path / "ref.txt")
    run(*files, "--spans", "-o", str(tmp_path / "out.tsv"))
    assert (tmp_path / "out.tsv").read_text().splitlines()[1:] == ["2\ta\t5\t7\tmajor\thyp"]
    run(*files, "--spans", "-o", str(tmp_path / "out.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [len(line["spans"]) for line in lines] == [0, 1]
    again = str(tmp_path / "ref.tsv")
    (tmp_path / "ref.tsv").write_text("ref\nAll is well.\nTake 10 mg.\n")
    run(files[0], again, files[1], "--spans", "-o", str(tmp_path / "two.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "two.jsonl").read_text().splitlines()]
    assert [(line["reference"], len(line["spans"])) for line in lines] == [(1, 0), (1, 0)]
    for options, message in (
        (["-o", "out.html"], "end it in .jsonl or .tsv"),
        (["-o", str(tmp_path / "no" / "out.tsv")], "there is no folder"),
        (["-m", "emd", "-m", "wrd-score"], "by one metric"),
        (["--plan"], "--spans and --plan are two things"),
        (["-m", "bleu"], "no transport plan"),
    ):
        wrong = CliRunner().invoke(app, ["explain", *texts, "--spans", *options])
        assert isinstance(wrong.exception, InvalidInput), options
        assert message in str(wrong.exception)
    wrong = CliRunner().invoke(app, ["explain", files[0], again, "--spans", "-o", again])
    assert "write to another file" in str(wrong.exception)
    assert (tmp_path / "ref.tsv").read_text().startswith("ref")


def test_an_empty_text_lacks_all_or_all_is_added(metric: Any) -> None:
    assert error_spans(metric, "", "The cat sat. ") == [("ref", "The cat sat.", "missing", "major")]
    assert error_spans(metric, " The cat sat.", "") == [("hyp", "The cat sat.", "added", "major")]
    assert metric.spans("", "") == ()
    assert metric.spans(" ", "\n") == ()


def test_what_is_repeated_is_one_span(metric: Any) -> None:
    assert error_spans(metric, "The the the cat sat.", "The cat sat.") == [
        ("hyp", "The the the", "added", "major")
    ]


def test_in_a_joint_vocabulary_a_word_is_not_its_own_counterpart() -> None:
    spans = error_spans(freight.load("std"), "We saw a volcano today.", "We saw a violin today.")
    assert [(side, text, kind) for side, text, kind, _ in spans] == [("hyp", "volcano", "wrong")]


def test_contractions_of_words_that_the_other_text_has_are_no_errors(metric: Any) -> None:
    assert (
        error_spans(
            metric,
            "He didn't go and can't see. It's late.",
            "He did not go and can not see. It\u2019s late.",
        )
        == []
    )
    assert error_spans(metric, "It's cold and they're late.", "It is cold and they are late.") == []
    assert (
        error_spans(
            metric, "It is cold and they are late.", "It\u2019s cold and they\u2019re late."
        )
        == []
    )


def test_annotations_are_read(tmp_path: Path) -> None:
    rows = [
        {"segment": "t:1", "system": "a", "hyp": "A cat.", "refs": ["A dog."], "errors": [
            {"start": 2, "end": 5, "severity": "major", "in_source": False},
            {"start": None, "end": None, "severity": "minor", "in_source": True},
        ]},
        {"segment": "t:2", "system": "a", "hyp": "A cat.", "ref": "A cat.", "errors": []},
    ]  # fmt: skip
    path = tmp_path / "mqm.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = read_annotations(path)
    assert first == ("t:1", "a", "A cat.", ("A dog.",), ((2, 5, "major"),))
    assert second.errors == ()
    path.write_text('{"hyp": "a", "ref": "b"}\n')
    with pytest.raises(InvalidInput, match=r"row 1 of .* has no list of errors"):
        list(read_annotations(path))
