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
from textwrap import indent

ROOT = Path(__file__).parent.parent
_HYP, _REF = "the cat sat on the mat\na dog\n", "a cat sat on a mat\nthe dog ran\n"
_LIGHT = "-m bert-score --encoder hashed"
_WORDS = "我 1 0\n喜欢 0 1\n北京 1 1\n上海 1 -1\n東京 1 0\nに 0 1\n行く 1 1\n"
_TEXTS = "['a cat sat'], ['the cat sat']"


def freight(arguments: str) -> list[str]:
    """A command of ours."""
    return [str(Path(sys.executable).with_name("freight")), *arguments.split()]


def python(code: str) -> list[str]:
    """A few lines of Python that end as a command of ours does where a part is missing."""
    ending = "except freight.MissingPart as missing:\n    sys.exit(f'freight: {missing}')"
    return [sys.executable, "-c", f"import sys, freight\ntry:\n{indent(code, '    ')}\n{ending}"]


PROMISES = {
    "embedded": freight("score hyp.txt ref.txt --json"),
    "multilingual": freight("score zh.txt zh.txt --encoder multilingual --json"),
    "lexical": freight("score hyp.txt ref.txt -m bleu -m rouge-l -m wer -m character --json"),
    "zh": freight("score zh.txt zh.txt -m wmd --lang zh --encoder static:words.txt --json"),
    "ja": freight("score ja.txt ja.txt -m wmd --lang ja --encoder static:words.txt --json"),
    "icu": freight("score th.txt th.txt -m wmd --lang th --encoder static:words.txt --json"),
    "cache": freight(f"score hyp.txt ref.txt {_LIGHT} --cache --json"),
    "train": freight("train word2vec hyp.txt ref.txt -o vectors.kv --dim 8 --epochs 1"),
    "tune": freight(
        "tune f-alpha judged.jsonl --grid alpha=0.2:0.8 --trials 2 --resamples 9"
        " --encoder hashed --json"
    ),
    "report": freight(f"score hyp.txt ref.txt {_LIGHT} -o page.html"),
    "serve": freight("serve --port 0 --encoder hashed"),
    "ray": freight(f"score hyp.txt ref.txt {_LIGHT} -o out/ --engine ray --json"),
    "pandas": python(
        f"result = freight.load('bert-score', encoder='hashed').score({_TEXTS})\n"
        "print(result.to_pandas().shape)"
    ),
    "evaluate": python(
        "import freight.interop.evaluate, evaluate\n"
        "metric = evaluate.load('modules/bert_score', encoder='hashed')\n"
        "print(metric.compute(predictions=['a cat sat'], references=['the cat sat']))"
    ),
    "torchmetrics": python(
        "from freight.interop.torchmetrics import FreightScore\n"
        f"print(FreightScore('bert-score', encoder='hashed')({_TEXTS}))"
    ),
    "spacy": python(
        "metric = freight.load('lazy-emd', encoder='hashed', tags='blank:en')\n"
        f"print(metric.score({_TEXTS}).system)"
    ),
    "trl": [sys.executable, str(ROOT / "examples/grpo_reward.py"), "--encoder=hashed", "--steps=1"],
    "docs": [sys.executable, "-m", "mkdocs", "build", f"--config-file={ROOT / 'mkdocs.yml'}"],
}
THEIRS = {"trl", "docs"}
"""Extras for programs that use us: without them there is nothing of ours that could refuse."""


def main() -> None:
    """Hold what is installed to its promises, and what is not to one line that says so."""
    wanted = sys.argv[1:]
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _write_files()
        _check_core()
        examined = json.loads(_run(freight("doctor --json"), "embedded" not in wanted).stdout)
        there = {name for name, extra in examined["extras"].items() if extra["installed"]}
        assert set(wanted) <= there, f"{set(wanted) - there} is not installed"
        for extra in PROMISES:
            _check(extra, extra in there)


def _write_files() -> None:
    rated = [("the cat sat", 9), ("a cat sat down", 7), ("dog", 1), ("the cat", 5), ("cats", 4)]
    rows = [{"hyp": hyp, "ref": "the cat sat", "human": human} for hyp, human in rated]
    files = {"hyp.txt": _HYP, "ref.txt": _REF, "words.txt": _WORDS}
    files |= {"zh.txt": "我喜欢北京\n", "ja.txt": "東京に行く\n", "th.txt": "สะพานใหม่\n"}
    files["judged.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
    for name, content in files.items():
        Path(name).write_text(content, encoding="utf-8")


def _check_core() -> None:
    """Without any extra: a light metric scores, and becomes a module."""
    said = _run(freight("score hyp.txt ref.txt -m lazy-emd --encoder hashed --json")).stdout
    score = json.loads(said)["metrics"][0]["system"]["transport"]
    assert 0 < score < 1, score
    assert _run(freight("--version")).stdout.startswith("freight ")
    assert _run(freight("export evaluate -m bert-score -o modules")).stdout


def _check(extra: str, installed: bool) -> None:
    if installed:
        _check_service() if extra == "serve" else _run(PROMISES[extra])
    elif extra not in THEIRS:
        said = _run(PROMISES[extra], refused=True).stderr.strip()
        assert "\n" not in said, said
        assert f"pip install 'freight[{extra}]'" in said, said
    outcome = "says how to install it" if extra not in THEIRS else "is not here"
    print(f"{extra}: {'works' if installed else outcome}", flush=True)


def _check_service() -> None:
    with subprocess.Popen(PROMISES["serve"], stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            place = service.stdout.readline().split()[-1]
            with urllib.request.urlopen(place, timeout=120) as page:
                assert b"<html" in page.read()
        finally:
            service.terminate()


def _run(command: list[str], refused: bool = False) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == int(refused), f"{command}:\n{done.stdout}{done.stderr}"
    return done


if __name__ == "__main__":
    main()
