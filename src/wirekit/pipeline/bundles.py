"""Divides the captures of a run into bundles and finds those that a lake already has.

A bundle is a set of captures and stored files whose rows become visible at once. It may contain only some files of a
capture; the next bundle then continues with the state of the capture's connections. If a capture has new files and no
bundle stored its state, or if a file has changed, all inputs of its bundle are read again, and the new bundle replaces
the old one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from itertools import takewhile
from typing import Any, NamedTuple

from wirekit.errors import Misuse
from wirekit.pipeline.commits import VERSION, open_captures
from wirekit.pipeline.inputs import CAPTURE, UNREAD, Input, Job, captures, renumbered
from wirekit.storage import in_parallel, is_remote, open_binary

BUNDLE_BYTES = 1 << 30
"""Approximate size in bytes of the captures in a bundle."""

BUNDLE_FILES = 10_000
"""Maximum number of files in a bundle, except for one uncut capture: the driver holds the tasks' report on each."""

STANDARD_INPUT = "-"
"""The name of standard input, which is a new file in each run."""

_FURTHER = f"{STANDARD_INPUT}#"  # followed by a number, from 2 on, for further standard inputs of the same tables

Files = tuple[Input, ...]
Commits = Mapping[int, Mapping[str, Any]]


class Part(NamedTuple):
    """A bundle's part of a capture: its name, its files, and whether other bundles have files before or after them."""

    capture: str
    files: Files
    continues: bool = False
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files that are committed together.

    Attributes:
        inputs: the files, with numbers from 0.
        replaces: the bundles whose rows this bundle replaces.
        parts: its parts of captures that other bundles have parts of, by the number of their first file.
    """

    inputs: Files
    replaces: tuple[int, ...] = ()
    parts: Mapping[int, Part] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(each.size for each in self.inputs)


@dataclass(slots=True)
class Plan:
    """The bundles that a run must make.

    Attributes:
        bundles: the bundles to write, in this order.
        committed: files that the lake already has.
        refused: files that an earlier run could not open, and that still cannot be opened: their names, and the reason.
        notes: messages about captures that are read again or continue.
    """

    bundles: list[Bundle] = field(default_factory=list)
    committed: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of bytes to read."""
        return sum(bundle.size for bundle in self.bundles)


class _Known(NamedTuple):
    """The entry of a file in a commit: the bundle, and the facts of the file when it was read."""

    bundle: int
    size: int
    mtime_ns: int


def plan_bundles(
    job: Job,
    commits: Commits,
    size: int = BUNDLE_BYTES,
    *,
    replace: bool = False,
    rotating: bool = False,
    cut: bool = True,
) -> Plan:
    """Plans the bundles of a run over a lake.

    Args:
        job: all files.
        commits: the commits of the lake, by the number of the bundle.
        size: size of a full bundle in bytes.
        replace: whether one bundle replaces the whole content of the lake.
        rotating: whether captures may get more files later.
        cut: whether the files of a capture may be in several bundles.

    Raises:
        Misuse: the lake was written with other options, has another file of the same name, or a file has changed and
            files that were read with it are not named.
    """
    groups = captures(job.inputs)
    if replace:
        return Plan([_bundle([_part(files, goes_on=rotating) for files in groups], sorted(commits))])
    _check_options(job, commits)
    entries = [(number, each) for number, commit in commits.items() for each in commit["inputs"]]
    groups = _with_new_names(groups, 1 + sum(_is_standard(each["file"]) for _, each in entries))
    file_by_path = {
        each["path"]: _Known(number, each["size"], each["mtime_ns"])
        for number, each in entries
        if not _is_standard(each["file"])
    }
    refused = _refused(
        each for each in job.inputs if each.path in file_by_path and file_by_path[each.path].mtime_ns == UNREAD
    )
    for each in (each for each in job.inputs if each.path in refused):
        file_by_path[each.path] = file_by_path[each.path]._replace(size=each.size, mtime_ns=each.mtime_ns)
    _check_names(job.inputs, entries)
    plan, fresh, again = Plan(), list[Part](), set[int]()
    live = open_captures(commits)
    names = {each["path"]: each["capture"] for _, each in entries}
    present = {each.path for each in job.inputs}
    complete = {
        number for number, commit in commits.items() if all(each["path"] in present for each in commit["inputs"])
    }
    connected = _connected(groups, file_by_path, commits)
    for files in groups:
        numbers = {file_by_path[each.path].bundle for each in files if each.path in file_by_path}
        if all(_is_same(each, file_by_path) for each in files):
            continue
        capture = names.get(files[0].path, "")
        before = tuple(takewhile(lambda each: _is_same(each, file_by_path), files))
        later = files[len(before) :]
        if not numbers:
            fresh.append(_part(files, goes_on=rotating))
        elif capture in live and not any(each.path in file_by_path for each in later):
            fresh.append(Part(capture, later, continues=True, goes_on=rotating))
        elif (bundles := set[int]().union(*(connected[number] for number in numbers))) <= complete:
            again |= bundles
            plan.notes.append(f"{files[0].name}: read again with its whole bundle, because it has new or changed files")
        else:
            plan.notes += _unchangeable(files, file_by_path, connected, commits, present)
            added = tuple(each for each in files if each.path not in file_by_path)
            if added:
                fresh.append(_part(added, goes_on=rotating))
                plan.notes.append(
                    f"{added[0].name}: read as a separate capture, because earlier files are no longer among the inputs"
                )
    reread = [
        files
        for files in groups
        if any(each.path in file_by_path and file_by_path[each.path].bundle in again for each in files)
    ]
    reread_paths = {each.path for files in reread for each in files}
    committed = [each for each in job.inputs if each.path in file_by_path and each.path not in reread_paths]
    plan.refused = {each.name: refused[each.path] for each in committed if each.path in refused}
    plan.committed = len(committed) - len(plan.refused)
    plan.bundles = _with_open_rows(
        [_part(files, goes_on=rotating) for files in reread],
        _divide([part for part in fresh if part.files[0].path not in reread_paths], size, cut=cut),
        again,
        commits,
    )
    return plan


def _with_new_names(groups: list[Files], number: int) -> list[Files]:
    """The captures; the name of standard input has a number if the tables already have standard inputs."""
    name = STANDARD_INPUT if number == 1 else f"{_FURTHER}{number}"
    return [(replace_fields(files[0], name=name),) if files[0].name == STANDARD_INPUT else files for files in groups]


def _with_open_rows(
    reread: Sequence[Part], fresh: Iterable[Sequence[Part]], again: Collection[int], commits: Commits
) -> list[Bundle]:
    """One bundle of parts that replaces the bundles ``again``, and bundles of fresh parts.

    Each also replaces the bundles that have open rows at the end of its captures.
    """
    open_rows: dict[str, set[int]] = {}
    for number, commit in commits.items():
        for name in commit.get("open", ()):
            open_rows.setdefault(name, set()).add(number)
    claimed: set[int] = set()

    def open_at_the_end_of(captures: Iterable[str]) -> list[int]:
        numbers = set[int]().union(*(open_rows.get(name, ()) for name in captures)) - claimed
        claimed.update(numbers)
        return sorted(numbers)

    bundles = []
    if reread:
        replaced = open_at_the_end_of(each["capture"] for number in again for each in commits[number]["inputs"])
        bundles.append(_bundle(reread, sorted([*again, *replaced])))
    return bundles + [_bundle(parts, open_at_the_end_of(part.capture for part in parts)) for parts in fresh]


def _check_options(job: Job, commits: Commits) -> None:
    """Refuses a lake that was written by another version or with other options."""
    for commit in commits.values():
        if commit["version"] != VERSION:
            version = f"another version of wirekit wrote the tables (format {commit['version']}, not {VERSION})"
            raise Misuse(f"{version}; pass another directory, or --replace")
        if commit["configuration"] != job.configuration():
            now, then = (_options(each) for each in (job.configuration(), commit["configuration"]))
            options = ", ".join(then[name] for name in then if now[name] != then[name])
            raise Misuse(
                f"the tables were written with other options ({options}); pass the same options, another directory, or "
                "--replace"
            )


def _check_names(files: Iterable[Input], entries: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Refuses a file whose name is that of another file in the commits."""
    paths: dict[str, set[str]] = {}
    for _, each in entries:
        paths.setdefault(each["file"], set()).add(each["path"])
    for file in files:
        if file.name != STANDARD_INPUT and file.path not in paths.get(file.name, {file.path}):
            raise Misuse(
                f"{file.name}: the tables have another file of this name, {min(paths[file.name])}, and ids depend on "
                f"names; pass {file.path}"
            )


def _options(configuration: Mapping[str, Any]) -> dict[str, str]:
    """The options of the command that select a configuration."""
    protocol, ports = configuration["protocol"], configuration["ports"]
    return {
        "protocol": f"--protocol {protocol}" if protocol else "without --protocol",
        "ports": " ".join(f"--port {port}={name}" for port, name in ports.items()) or "without --port",
        "raw": "without --no-raw" if configuration["raw"] else "--no-raw",
        "values": "--values" if configuration["values"] else "without --values",
    }


def _part(files: Files, *, goes_on: bool) -> Part:
    """The part of a capture that begins with its first file."""
    return Part(files[0].name, files, goes_on=goes_on and files[0].kind == CAPTURE and not _is_standard(files[0].name))


def _is_standard(name: str) -> bool:
    """Whether a name is that of a standard input: ``-``, or ``-#2`` for the second one in the same tables."""
    return name == STANDARD_INPUT or name.startswith(_FURTHER)


def _bundle(parts: Sequence[Part], replaces: Iterable[int] = ()) -> Bundle:
    inputs = renumbered([part.files for part in parts])
    firsts = [each.number for each in inputs if each.first is None]
    unfinished = {number: part for number, part in zip(firsts, parts, strict=True) if part.continues or part.goes_on}
    return Bundle(inputs, tuple(replaces), unfinished)


def _is_same(each: Input, file_by_path: Mapping[str, _Known]) -> bool:
    """Whether a bundle has the file as it is now."""
    earlier = file_by_path.get(each.path)
    return earlier is not None and (earlier.size, earlier.mtime_ns) == (each.size, each.mtime_ns)


def _refused(files: Iterable[Input]) -> dict[str, str]:
    """The paths of the files that cannot be opened now, and the reasons."""

    def why(path: str) -> str:
        try:
            with open_binary(path) as source:
                source.peek(1)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    paths = [each.path for each in files]
    return {path: reason for path, reason in zip(paths, in_parallel(why, paths), strict=True) if reason}


def _unchangeable(
    files: Files,
    file_by_path: Mapping[str, _Known],
    connected: Mapping[int, Iterable[int]],
    commits: Commits,
    present: set[str],
) -> Iterator[str]:
    """Notes on changed files of a capture whose bundles cannot be read again, because files of them are gone.

    Raises:
        Misuse: the files are there, but not among the inputs.
    """
    for each in files:
        if each.path not in file_by_path or _is_same(each, file_by_path):
            continue
        others = (
            other for number in sorted(connected[file_by_path[each.path].bundle]) for other in commits[number]["inputs"]
        )
        missing = {other["path"]: other["file"] for other in others if other["path"] not in present}
        for path, name in missing.items():
            if not is_remote(path) and os.path.exists(path):
                size, now = file_by_path[each.path].size, each.size
                sizes = f"had {size:,} bytes when it was read, and has {now:,} now"
                raise Misuse(
                    f"{each.name} {sizes if size != now else 'has changed since it was read'}; also pass "
                    f"{name}, which was read with it, or pass --replace"
                )
        yield (
            f"{each.name}: has changed, and the tables keep what was read before, because "
            f"{next(iter(missing.values()))} was read with it and is gone; --replace reads all inputs again"
        )


def _connected(groups: Sequence[Files], file_by_path: Mapping[str, _Known], commits: Commits) -> dict[int, set[int]]:
    """For each bundle, all bundles that files of one capture connect with it, itself included; files may be gone."""
    connected = {number: {number} for number in commits}
    holders: dict[str, set[int]] = {}
    for number, commit in commits.items():
        for each in commit["inputs"]:
            holders.setdefault(each["capture"], set()).add(number)
    now = ({file_by_path[each.path].bundle for each in files if each.path in file_by_path} for files in groups)
    for numbers in (*holders.values(), *now):
        if len(numbers) > 1:
            together = set[int]().union(*(connected[number] for number in numbers))
            connected.update(dict.fromkeys(together, together))
    return connected


def _divide(parts: Iterable[Part], size: int, *, cut: bool) -> list[list[Part]]:
    """Divides files, in order, into bundles of a target size; a capture may be in several if it may be cut."""
    bundles: list[list[Part]] = []
    total = count = 0
    for part in parts:
        pieces = [(each,) for each in part.files] if cut else [part.files]
        for number, files in enumerate(pieces):
            last = number + 1 == len(pieces)
            if not bundles or total >= size or count + len(files) > BUNDLE_FILES:
                bundles.append([])
                total = count = 0
            fragment = part._replace(
                files=files, continues=part.continues or number > 0, goes_on=part.goes_on or not last
            )
            if bundles[-1] and number and bundles[-1][-1].capture == part.capture:
                before = bundles[-1].pop()
                fragment = fragment._replace(files=before.files + files, continues=before.continues)
            bundles[-1].append(fragment)
            total += sum(each.size for each in files)
            count += len(files)
    return bundles
