"""Completion works in the shells that click knows; each is asked where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from wirekit.cli import group

ASKED = {
    "bash": """
source "$1"
COMP_WORDS=(wirekit {words}) COMP_CWORD={last}
_wirekit_completion wirekit
printf "%s\\n" "${{COMPREPLY[@]}}"
""",
    "zsh": """
autoload -U compinit && compinit -u -D
_describe() {{ local -a found; found=("${{(@P)3}}"); print -l -- "${{found[@]%%:*}}"; }}
compadd() {{ print -l -- "${{(@P)@[-1]}}"; }}
source "$1"
words=(wirekit {words}) CURRENT=$(({last} + 1))
_wirekit_completion
""",
    "fish": """
source $argv[1]
complete --do-complete "wirekit {words}"
""",
}


def environment(tmp_path: Path) -> dict[str, str]:
    """Has the shells find a ``wirekit``, whether it is installed or not."""
    command = tmp_path / "wirekit"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wirekit "$@"\n')
    command.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("shell", ASKED)
def test_the_script_of_each_shell_is_printed(tmp_path: Path, shell: str) -> None:
    variables = environment(tmp_path) | {"_WIREKIT_COMPLETE": f"{shell}_source"}
    completed = subprocess.run(["wirekit"], env=variables, capture_output=True, text=True, check=True)
    assert f"_WIREKIT_COMPLETE={shell}_complete" in completed.stdout


@pytest.mark.parametrize("shell", ASKED)
@pytest.mark.parametrize(
    ("words", "expected"),
    [("pipe", "pipeline"), ("decode --out", "--output"), ("schemas kaf", "kafka.message_set")],
)
def test_a_shell_completes(tmp_path: Path, shell: str, words: str, expected: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    variables = environment(tmp_path)
    script = tmp_path / "script"
    script.write_bytes(subprocess.check_output(["wirekit"], env=variables | {"_WIREKIT_COMPLETE": f"{shell}_source"}))
    text = ASKED[shell].format(words=words, last=len(words.split()))
    command = [shell, "-c", text, *([] if shell == "fish" else [shell]), str(script)]
    completed = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert expected in completed.stdout, completed.stderr


@pytest.mark.parametrize(
    ("words", "last", "expected"),
    [
        ("decode", "pul", {"pulsar.frame", "pulsar.batch", "file"}),
        ("decode", "kafka.message", {"kafka.message", "kafka.message_set", "file"}),
        ("decode kafka", "fra", {"file"}),
        ("frames", "fra", {"file"}),
        ("frames --protocol", "joy", {"joyqueue"}),
        ("frames --port", "9092=k", {"9092=kafka"}),
        ("inspect --report", "p", {"file"}),
        ("sql", "la", {"lag", "lag_over_time", "latency"}),
        ("sql lag", "fra", {"file"}),
    ],
)
def test_keys_and_files_are_completed(words: str, last: str, expected: set[str]) -> None:
    completions = ShellComplete(group, {}, "wirekit", "_WIREKIT_COMPLETE").get_completions(words.split(), last)
    assert expected <= {each.value if each.type == "plain" else each.type for each in completions}
    assert all(each.value.startswith(last) for each in completions)
