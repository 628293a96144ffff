"""Sealed records, manifests and folders by themselves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from freight.errors import FreightError, InvalidInput
from freight.run.journal import Environment, Manifest, RunFolder, open_record, seal_record


def test_a_record_is_opened_by_its_owner_only() -> None:
    record = seal_record({"b": 1, "a": [2, None, "ü"]}, "me")
    assert open_record(record, "me") == {"b": 1, "a": [2, None, "ü"]}
    assert open_record(record, "you") is None
    assert record.endswith(b"\n")


@pytest.mark.parametrize("record", [None, b"", b"[]", b"{}", b'{"seal": "x"}', b"\xff", b"null"])
def test_what_is_no_record_is_not_opened(record: bytes | None) -> None:
    assert open_record(record) is None


def test_every_flipped_bit_of_a_record_is_noticed() -> None:
    record = seal_record({"number": 3, "rows": 20}, "me")
    for place in range(len(record) - 1):
        damaged = bytearray(record)
        damaged[place] ^= 1
        assert open_record(bytes(damaged), "me") is None, place


def manifest(**fields: object) -> Manifest:
    file = {"name": "in.jsonl", "ending": ".jsonl", "bytes": 3, "sha256": "ab"}
    reading: dict[str, object] = {
        "encoding": "utf-8",
        "hyp_column": None,
        "ref_columns": [],
        "systems": 1,
    }
    plain = Manifest(
        version="1.0",
        input={"files": [file], **reading},
        segments=25,
        metrics=[{"name": "emd", "columns": ["transport"], "signature": "emd|layers:3"}],
        shard=10,
        format="parquet",
        escape=False,
        libraries={"numpy": "2"},
        device="CPU",
    )
    return replace(plain, **fields)  # type: ignore[arg-type]


def test_a_manifest_is_read_back() -> None:
    assert Manifest.from_bytes(manifest().to_bytes()) == manifest()
    assert Manifest.from_bytes(manifest().to_bytes()[:-9]) is None
    assert Manifest.from_bytes(seal_record({"version": "1.0"})) is None


def test_shards_have_numbers_of_equal_length() -> None:
    assert manifest().shard_count == 3
    assert manifest().shard_name(2) == "shard-00002.parquet"
    assert manifest(segments=10**7, shard=1).shard_name(5) == "shard-00000005.parquet"


def test_the_identity_is_that_of_the_scores() -> None:
    moved = {**manifest().input, "files": [{**manifest().input["files"][0], "name": "moved"}]}
    unchanged: list[dict[str, Any]] = [
        {"device": "GPU"},
        {"libraries": {}},
        {"complete": True},
        {"input": moved},
    ]
    for same in unchanged:
        assert manifest(**same).identity == manifest().identity
    changed: list[dict[str, Any]] = [
        {"version": "1.1"},
        {"shard": 11},
        {"format": "csv"},
        {"escape": True},
        {"metrics": []},
    ]
    for other in changed:
        assert manifest(**other).identity != manifest().identity


@pytest.mark.parametrize(
    ("fields", "difference"),
    [
        ({}, None),
        ({"version": "1.1"}, "by freight 1.0, and this is 1.1"),
        ({"shard": 11}, "with 10 segments a shard, not 11"),
        ({"format": "csv"}, "as parquet, not csv"),
        ({"escape": True}, "without --escape"),
        (
            {"metrics": [{"name": "emd", "columns": ["transport"], "signature": "emd|layers:4"}]},
            "with emd having layers:3, not layers:4",
        ),
    ],
)
def test_the_first_difference_is_named(fields: dict[str, object], difference: str | None) -> None:
    assert manifest(**fields).difference(manifest()) == difference


def test_the_environment_names_the_libraries() -> None:
    environment = Environment.of_this_process([])
    assert environment.signatures == []
    assert sorted(environment.libraries) == ["numpy", "pyarrow", "torch"]


def test_a_folder_keeps_a_second_run_out(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out")
    assert folder.names == set()
    with folder.lock():
        with pytest.raises(FreightError, match="another run"), RunFolder(folder.path).lock():
            pass
        folder.write_file("a", b"one")
        folder.append_line("a", b" two\n")
        assert folder.names == {"a"}
    assert folder.read_file("a") == b"one two\n"
    assert folder.read_file("b") is None
    assert folder.file_digest("b") is None


def test_unfinished_files_of_others_are_not_ours(tmp_path: Path) -> None:
    folder, digits = RunFolder(tmp_path), "0123456789abcdef" * 2
    ours = f"a.json.{digits}.part"
    others = {"a.json.part", f"b.json.{digits}.part", f"a.json.{digits[1:]}.part", "thesis.part"}
    for name in (ours, *others):
        (tmp_path / name).touch()
    assert folder.unfinished({"a.json"}) == {ours}
    folder.remove_files([ours, "gone"])
    assert folder.names == others


def test_a_folder_that_is_refused_keeps_no_lock(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(InvalidInput), folder.lock():
        raise InvalidInput("the folder is somebody else's")
    assert not list(tmp_path.iterdir())
