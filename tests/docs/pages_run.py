"""Runs the examples of a page of the documentation, in the order in which they stand.

A block ``console`` has commands behind ``$``, each with what it prints. A block ``python`` with ``>>>`` is a doctest;
the blocks of a page share their names. A block with ``title="FILE"`` is written to that file. All of it happens in a
directory of the page's own, in which ``fixtures`` is that of the repository.
"""

from __future__ import annotations

import doctest
import gc
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^(?P<head>```(?P<language>\w+)(?P<rest>[^\n]*))\n(?P<text>.*?)^```$", re.M | re.S)
ALONE = re.compile(
    r"(?P<command>wirekit (?:[^|<>;&$`\"]|\"[^\"]*\")*?)(?: \| head -(?P<lines>\d+)| > (?P<file>\S+)(?P<both> 2>&1)?)?"
)
"""A command of wirekit alone, the first lines of its output, or its output in a file."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An example that prints something else."""

    example: str
    expected: str
    printed: str

    def __str__(self) -> str:
        return f"{self.example}\n--- the page says\n{self.expected}\n--- it prints\n{self.printed}"


def run_page(path: Path, names: dict[str, Any]) -> Iterator[Wrong]:
    """The examples of a page that are wrong; the working directory is the page's, ``names`` are there already."""
    for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
        title = re.search(r'title="([^"]+)"', block["rest"])
        if title:
            target = Path(title[1])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block["text"], encoding="utf-8")
        elif block["language"] == "console":
            yield from _console(block["text"])
        elif block["language"] == "python" and ">>> " in block["text"]:
            yield from _python(block["text"], names, path.name)


def _console(text: str) -> Iterator[Wrong]:
    for part in re.split(r"^(?=\$ )", text, flags=re.M):
        if not part.startswith("$ "):
            continue
        command, _, expected = part[2:].partition("\n")
        printed = "\n".join(line.rstrip() for line in _printed(command).rstrip().splitlines())
        if printed != expected.rstrip():
            yield Wrong(f"$ {command}", expected.rstrip(), printed)


def _printed(command: str) -> str:
    """What a command prints, both streams; those of wirekit alone run in this process, which saves their start."""
    if command.startswith("export "):
        name, _, value = command.removeprefix("export ").partition("=")
        os.environ[name] = value
        return ""
    alone = ALONE.fullmatch(command)
    if alone is not None and "PYTHONPATH" not in os.environ:
        printed, complaint = _in_process(
            shlex.split(alone["command"])[1:], apart=bool(alone["file"]) and not alone["both"]
        )
        if alone["file"]:
            Path(alone["file"]).write_text(printed, encoding="utf-8")
            return complaint
        return "".join(printed.splitlines(keepends=True)[: int(alone["lines"])]) if alone["lines"] else printed
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(
        ["bash", "-c", f"{{ {command}; }} 2>&1"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return run.stdout


def _in_process(arguments: list[str], *, apart: bool) -> tuple[str, str]:
    """What a command prints, and what it says on standard error if that is wanted apart."""
    from wirekit.cli import main

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    error = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) if apart else out
    threshold = gc.get_threshold()
    with redirect_stdout(out), redirect_stderr(error), suppress(SystemExit):
        main(arguments)
    gc.set_threshold(*threshold)
    texts = [stream.buffer.getvalue().decode() for stream in (out, error)]  # type: ignore[attr-defined]
    return texts[0], texts[1] if apart else ""


def _python(text: str, names: dict[str, Any], page: str) -> Iterator[Wrong]:
    test = doctest.DocTestParser().get_doctest(text, names, page, page, 0)
    wrong: list[Wrong] = []

    class Runner(doctest.DocTestRunner):
        def report_failure(self, out: Any, test: Any, example: Any, output: str) -> None:
            wrong.append(Wrong(example.source, example.want, output))

        def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
            wrong.append(Wrong(example.source, example.want, f"{exc_info[0].__name__}: {exc_info[1]}"))

    Runner(optionflags=doctest.ELLIPSIS).run(test, out=lambda _: None, clear_globs=False)
    names.update(test.globs)
    yield from wrong
