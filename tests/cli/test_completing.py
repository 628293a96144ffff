"""What shells offer while one types, asked as they ask; and the version."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import freight
from freight.cli import app, completion, main
from freight.metrics import find_metric

Asked = Callable[..., str]
PROGRAM = Path(sys.executable).with_name("freight")
needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    """The program's answers to a shell, whose question is in the environment."""

    def answer(**environment: str) -> str:
        monkeypatch.setattr(sys, "argv", ["freight"])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
        return capsys.readouterr().out

    return answer


def in_shell(shell: str, *options: str, script: str, home: Path) -> list[str]:
    """The lines that a real shell prints, for whom the completion was installed in this home."""
    places = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": places, "HOME": str(home), "ZDOTDIR": str(home)}
    install = f"freight --install-completion {shell}"
    for command in ([shell, *options, install], [shell, *options, script]):
        environment["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
        done = subprocess.run(command, env=environment, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_every_name_completes() -> None:
    offered = dict(completion.metrics(""))
    assert list(offered) == list(freight.list_metrics())
    for name in completion.ENCODERS:
        assert any(known.startswith(name) for known in freight.list_encoders())


@pytest.mark.parametrize("name", freight.list_metrics())
def test_columns_complete_after_a_colon(name: str) -> None:
    offered = [word for word, _ in completion.metrics(f"{name}:")]
    assert offered == [f"{name}:{column}" for column in find_metric(name).columns or ()]


def test_settings_complete_with_what_they_do() -> None:
    every = dict(completion.settings(""))
    assert every["hyp="].startswith("Penalty of the hypothesis")
    assert {"pooling=", "tokenize=", "greedy="} <= set(every)
    of_one = dict(completion.settings("wmd."))
    assert list(of_one) == [f"wmd.{name}=" for name in find_metric("wmd").parameters]
    assert [word for word, _ in completion.settings("emd.unit=")] == [
        "emd.unit=tokens",
        "emd.unit=words",
    ]
    assert completion.settings("nothing.") == []
    assert completion.settings("nothing=") == []


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("score -m lazy", {"lazy-emd"}),
        ("score -m bert-score : ", {"f1", "precision", "recall"}),
        ("judge x -m bert-score : p", {"precision"}),
        ("explain a b --metric = wrd-score : w", {"wrd"}),
        ("score --encoder hash", {"hashed"}),
        ("tune wrd-score-", {"wrd-score-code"}),
        ("sample -m s+", {"s+wms"}),
        ("judge x --statistic soft", {"soft-accuracy"}),
        ("score --engine r", {"ray"}),
        ("doc", {"doctor"}),
        ("score -m lazy-emd -m nothing", set()),
        ("score --set unit = w", {"words"}),
        ("score --set std.sha", {"std.shared="}),
    ],
)
def test_bash_which_takes_words_apart(asked: Asked, typed: str, completions: set[str]) -> None:
    words = ["freight", *typed.rstrip(" ").split(" ")]
    answer = asked(
        _FREIGHT_COMPLETE="complete_bash",
        COMP_WORDS="\n".join(words),
        COMP_CWORD=str(len(words) - 1),
    )
    assert set(answer.split()) == completions


@needs_program
def test_in_bash(tmp_path: Path) -> None:
    script = (
        "source ~/.bashrc; COMP_WORDS=(freight score -m bert-score : pre); COMP_CWORD=5;"
        " _freight_completion freight; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    assert in_shell("bash", "--norc", "-c", script=script, home=tmp_path) == ["precision", ""]


@needs_program
@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_in_fish(tmp_path: Path) -> None:
    installed = "~/.config/fish/completions/freight.fish"
    script = f"source {installed}; complete -C 'freight score -m bert-score:'"
    lines = in_shell("fish", "-c", script=script, home=tmp_path)
    names = {line.split("\t")[0] for line in lines}
    assert {"bert-score:f1", "bert-score:precision", "bert-score:recall"} <= names


def test_what_zsh_and_fish_are_told(asked: Asked) -> None:
    line = {"_TYPER_COMPLETE_ARGS": "freight score -m bert-score:p"}
    told = asked(_FREIGHT_COMPLETE="complete_zsh", **line)
    assert told.strip() == (
        '_arguments \'*: :(("bert-score\\\\:precision":"column of bert-score"))\''
    )
    action = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    told = asked(_FREIGHT_COMPLETE="complete_fish", **line, **action)
    assert told == "bert-score:precision\tcolumn of bert-score\n"


def test_a_key_does_not_wait_for_torch() -> None:
    code = "import sys, freight.cli; assert not {'torch', 'pyarrow'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_said_in_both_ways() -> None:
    for arguments in (["--version"], ["version"]):
        result = CliRunner().invoke(app, arguments)
        assert (result.exit_code, result.output) == (0, f"freight {freight.__version__}\n")
