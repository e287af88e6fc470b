"""Every command line of the READMEs and the documentation has a command, options and values that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from wirekit.cli import group
from wirekit.cli.arguments import KeyType
from wirekit.fuzz.targets import parse_target
from wirekit.registry import BUILT_IN, registry

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)
INDENTED = re.compile(r"(?:^    [^\n]*\n)+", re.M)
SHELL = {"", "console", "sh", "bash"}
PLACEHOLDERS = {"KEY": "kafka.request", "N": "1"}
"""Placeholders whose value is checked, and a value."""


def commands_of(page: Path) -> list[tuple[list[str], bool]]:
    """The words of each command of a page, and whether it is a line of a shell block; others are part of a sentence."""
    text = page.read_text(encoding="utf-8")
    blocks = [block["text"] for block in FENCED.finditer(text) if block["language"] in SHELL]
    sentences = FENCED.sub("", text)
    blocks += INDENTED.findall(sentences)
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    commands = [(words, True) for line in lines for words in split(line.removeprefix("$ "))]
    inline = re.findall(r"`([^`\n]+)`", sentences)
    return commands + [(words, False) for line in inline if "<" not in line for words in split(line)]


def split(line: str) -> list[list[str]]:
    """The commands of wirekit and make in a line, without comments, redirections and variables in front."""
    if not re.search(r"(?:^|[ |])(?:wirekit|make) ", line):
        return []
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&><")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    redirected = False
    for word in lexer:
        if set(word) <= set("|;&"):
            commands.append([])
            redirected = False
        elif set(word) <= set("><&"):
            redirected = True
        elif not redirected:
            commands[-1].append(word)
    return [command for command in commands if len(command) > 1 and command[0] in ("wirekit", "make")]


def listed(program: str) -> list[tuple[str, list[str], bool]]:
    """The different commands of a program on all pages."""
    commands = {
        (str(page.relative_to(ROOT)), tuple(words[1:]), whole)
        for page in PAGES
        for words, whole in commands_of(page)
        if words[0] == program
    }
    return [(page, list(words), whole) for page, words, whole in sorted(commands)]


def shown(value: object) -> str:
    """A part of the name of a test."""
    return " ".join(value)[:80] if isinstance(value, list) else str(value) if isinstance(value, str) else ""


def parse(words: list[str]) -> tuple[click.Command, dict[str, Any]]:
    """The command that the words name, and the values of its parameters."""
    context = click.Context(group, info_name="wirekit")
    name, command, arguments = group.resolve_command(context, words)
    assert command is not None
    return command, command.make_context(name, arguments, parent=context).params


@pytest.fixture
def _files_need_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        for parameter in command.params if command is not None else ():
            if isinstance(parameter.type, click.Path):
                monkeypatch.setattr(parameter.type, "exists", False)


@pytest.mark.usefixtures("_files_need_not_exist")
@pytest.mark.parametrize(("page", "words", "whole"), listed("wirekit"), ids=shown)
def test_a_command_of_wirekit_parses(page: str, words: list[str], whole: bool) -> None:
    words = [PLACEHOLDERS.get(word, word) for word in words]
    if not whole:
        # Part of a sentence, such as `wirekit frames --frame`: what is there must be right.
        try:
            parse(words)
        except click.MissingParameter:
            return
        except click.BadOptionUsage as error:
            if error.option_name == words[-1]:
                return
            raise
    command, values = parse(words)
    if command.name == "fuzz" and values["target"] not in (None, "TARGET", "tcp:HOST:PORT"):
        parse_target(values["target"])
    for parameter in command.params:
        if isinstance(parameter.type, KeyType):
            value = values[str(parameter.name)]
            for key in value if isinstance(value, tuple) else [value]:
                protocol = str(key).partition(".")[0]  # a tutorial's own protocol is not registered here
                assert protocol not in BUILT_IN or key == protocol or key in registry, f"{page}: {key}"


@pytest.mark.parametrize(
    "line",
    ["wirekit frames --follows 3 a.pcap", "wirekit schemas kafka --output rust", "wirekit frame a.pcap | wc"],
)
def test_a_command_that_does_not_parse_is_refused(line: str) -> None:
    ((_, *words),) = split(line)
    with pytest.raises(click.UsageError):
        parse(words)


@pytest.mark.parametrize(("page", "words"), [each[:2] for each in listed("make")], ids=shown)
def test_a_command_of_make_names_a_target_and_variables(page: str, words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    variables = set(re.findall(r"^([A-Z_]+) [:?]?=", makefile, re.M))
    named = {word.partition("=")[0] for word in words if "=" in word}
    assert {word for word in words if "=" not in word} <= targets, page
    assert named <= variables, page
