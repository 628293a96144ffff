"""What each extra promises, as commands: kept where it is installed, refused in one line elsewhere.

Run by the Python of the environment that is looked at: `python promises.py [EXTRA ...]`.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("freight"))
_HYP, _REF = "the cat sat on the mat\na dog\n", "a cat sat on a mat\nthe dog ran\n"
_LIGHT = "-m bert-score --encoder hashed"
_WORDS = "我 1 0\n喜欢 0 1\n北京 1 1\n上海 1 -1\n"

COMMANDS = {
    "embedded": "score hyp.txt ref.txt --json",
    "lexical": "score hyp.txt ref.txt -m bleu -m rouge-l -m wer -m character --json",
    "zh": "score zh.txt zh.txt -m wmd --lang zh --encoder static:words.txt --json",
    "cache": f"score hyp.txt ref.txt {_LIGHT} --cache --json",
    "train": "train word2vec hyp.txt ref.txt -o vectors.kv --dim 8 --epochs 1",
    "tune": "tune f-alpha judged.jsonl --grid alpha=0.2:0.8 --trials 2 --resamples 9"
    " --encoder hashed --json",
    "report": f"score hyp.txt ref.txt {_LIGHT} -o page.html",
    "serve": "serve --port 0 --encoder hashed",
    "ray": f"score hyp.txt ref.txt {_LIGHT} -o out/ --engine ray --json",
}
_PANDAS = (
    "import sys, freight\n"
    "result = freight.load('bert-score', encoder='hashed').score(['a'], ['a'])\n"
    "try:\n"
    "    print(result.to_pandas().shape)\n"
    "except freight.MissingPart as missing:\n"
    "    sys.exit(f'freight: {missing}')\n"
)


def main() -> None:
    """Hold what is installed to its promises, and what is not to one line that says so."""
    wanted = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _write_files()
        _check_core()
        examined = json.loads(_freight("doctor --json", "embedded" not in wanted).stdout)
        there = {name for name, extra in examined["extras"].items() if extra["installed"]}
        assert set(wanted) <= there, f"{set(wanted) - there} is not installed"
        os.environ["NUMBA_DISABLE_JIT"] = "1"  # the core has shown that kernels compile
        for extra in (*COMMANDS, "pandas"):
            _check(extra, extra in there)
            print(f"{extra}: {'works' if extra in there else 'says how to install it'}", flush=True)


def _write_files() -> None:
    rated = [("the cat sat", 9), ("a cat sat down", 7), ("dog", 1), ("the cat", 5), ("cats", 4)]
    rows = [{"hyp": hyp, "ref": "the cat sat", "human": human} for hyp, human in rated]
    files = {"hyp.txt": _HYP, "ref.txt": _REF, "words.txt": _WORDS, "zh.txt": "我喜欢北京\n"}
    files["judged.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
    for name, content in files.items():
        Path(name).write_text(content, encoding="utf-8")


def _check_core() -> None:
    """Without any extra: kernels compile, and a metric on a light encoder scores."""
    found = json.loads(_freight("score hyp.txt ref.txt -m lazy-emd --encoder hashed --json").stdout)
    score = found["metrics"][0]["system"]["transport"]
    assert 0 < score < 1, score
    assert _freight("--version").stdout.startswith("freight ")


def _check(extra: str, installed: bool) -> None:
    if extra == "serve" and installed:
        return _check_service()
    if extra == "pandas":
        done = _run([sys.executable, "-c", _PANDAS], not installed)
    else:
        done = _freight(COMMANDS[extra], not installed)
    if not installed:
        said = done.stderr.strip()
        assert "\n" not in said, said
        assert f"pip install 'freight[{extra}]'" in said, said


def _check_service() -> None:
    command = [PROGRAM, *COMMANDS["serve"].split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            place = service.stdout.readline().split()[-1]
            with urllib.request.urlopen(place, timeout=120) as page:
                assert b"<html" in page.read()
        finally:
            service.terminate()


def _freight(arguments: str, refused: bool = False) -> subprocess.CompletedProcess[str]:
    return _run([PROGRAM, *arguments.split()], refused)


def _run(command: list[str], refused: bool) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == int(refused), f"{command}:\n{done.stdout}{done.stderr}"
    return done


if __name__ == "__main__":
    main()
