"""`freight train` as a user runs it, mistakes included."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import freight
from freight.cli import app

TEXTS = "the cat sat\na dog sat\nthe dog ran\n"
COMMAND = [sys.executable, "-c", "from freight.cli import main; main()", "train"]


@pytest.mark.parametrize("method", ["cooccurrence", "word2vec"])
def test_train_then_score(method: str, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS)
    out = tmp_path / "vectors.kv"
    arguments = [method, str(tmp_path / "texts.txt"), "-o", str(out), "--dim", "3"]
    done = CliRunner().invoke(app, ["train", *arguments])
    assert done.exit_code == 0, done.output
    assert "near dog" in done.output
    about = json.loads((tmp_path / "vectors.kv.json").read_text())
    assert about["method"] == method
    assert about["corpus"]["files"][0]["texts"] == 3
    result = freight.load("wrd-score", encoder=f"static:{out}").score(["the cat"], ["the cat"])
    assert result["f1"][0] == pytest.approx(1)


def test_standard_input_is_a_file_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS)
    for name, source in (("a.bin", "-"), ("b.bin", "texts.txt")):
        arguments = ["cooccurrence", source, "-o", name, "--dim", "3", "--window", "1"]
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=TEXTS.encode(),
            cwd=tmp_path,
            capture_output=True,
            check=True,
        )
        assert not done.stderr
    assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "b.bin").read_bytes()
    about = [json.loads((tmp_path / f"{name}.bin.json").read_text()) for name in "ab"]
    names = [one["corpus"]["files"][0].pop("name") for one in about]
    assert names == ["standard input", "texts.txt"]
    assert about[0] == about[1]


def test_names_of_methods(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "src.zip", "w") as archive:
        archive.writestr("A.java", "class A { int getSize() { return 1; } void setSize() { } }")
    out = tmp_path / "names.npz"
    take = f"{Path(__file__).parents[2]}/examples/java_methods.py:method_names"
    arguments = ["--take", take, "--lang", "code", "-o", str(out), "--dim", "2"]
    done = CliRunner().invoke(app, ["train", "cooccurrence", str(tmp_path / "src.zip"), *arguments])
    assert done.exit_code == 0, done.output
    cloud = freight.encoder(f"static:{out}", lang="code").encode(["getSize"], [0])
    assert cloud.layers.any(dim=2).all()


MISTAKES = {
    "no file": (["nowhere"], "there is no file or folder nowhere"),
    "empty": (["empty.txt"], "the corpus has no words"),
    "few words": (["texts.txt", "--dim", "7"], "6 words cannot have 7 dimensions; lower --dim"),
    "ending": (["texts.txt", "-o", "vectors.xyz"], "ends in none of .kv .npz .bin .vec .txt"),
    "folder": (["texts.txt", "-o", "no/vectors.kv"], "there is no folder no"),
    "encoding": (["latin.txt"], "line 1 of latin.txt is not utf-8 (byte 0xe9); re-encode it"),
    "member": (["src.zip"], "line 1 of src.zip/a.txt is not utf-8"),
    "no zip": (["bad.zip"], "bad.zip is not a whole zip file"),
    "no gzip": (["bad.gz"], "bad.gz is not a whole gzip file"),
    "glob": (["inner", "--glob", "*.java"], "the folder inner holds no file *.java"),
    "take": (["texts.txt", "--take", "words"], "there is lines, files, or FILE.py:FUNCTION"),
    "rare": (["texts.txt", "--min-count", "9"], "lower --min-count"),
    "stdin twice": (["-", "-"], "give - once only"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "texts.txt").write_text(TEXTS)
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    for name in ("bad.zip", "bad.gz"):
        (tmp_path / name).write_bytes(b"neither")
    with zipfile.ZipFile("src.zip", "w") as archive:
        archive.writestr("a.txt", b"caf\xe9")
    arguments, message = MISTAKES[mistake]
    given = [] if "-o" in arguments else ["-o", "vectors.bin"]
    done = CliRunner().invoke(app, ["train", "cooccurrence", *arguments, *given])
    assert isinstance(done.exception, freight.InvalidInput)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not list(tmp_path.glob("vectors*"))


@pytest.mark.parametrize(
    "arguments",
    [["word2vec", "texts.txt", "-o", "v.bin"], ["cooccurrence", "texts.txt", "-o", "v.kv"]],
)
def test_without_gensim_it_says_what_to_install(arguments: list[str], tmp_path: Path) -> None:
    code = "import sys; sys.modules['gensim'] = None\nfrom freight.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "train", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == "freight: gensim is not installed; run  pip install 'freight[train]'\n"
