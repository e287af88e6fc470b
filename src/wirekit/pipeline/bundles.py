"""Divides the captures of a run into bundles and finds those that a lake already has.

A bundle is what becomes visible at once: captures, each with all files of its rotation, and stored files. The state of
open connections is not carried from one bundle to the next: a capture that has got more files, or a file that has
changed, is read again with all that its bundle holds, and the new bundle replaces the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wirekit.errors import Misuse
from wirekit.pipeline.inputs import Input, Job, captures, renumbered
from wirekit.pipeline.output import VERSION

BUNDLE_BYTES = 1 << 30
"""Bytes of captures in a bundle, about."""

STANDARD_INPUT = "-"
"""The name of a file that is another one each time."""

Files = tuple[Input, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files that are committed together.

    Attributes:
        inputs: the files, with numbers from 0.
        replaces: the bundles whose rows go away then.
    """

    inputs: Files
    replaces: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.inputs)


@dataclass(slots=True)
class Plan:
    """The bundles that a run must make.

    Attributes:
        bundles: those to be made, in this order.
        committed: files that the lake has already.
        notes: what readers should know of captures that are not simply new.
    """

    bundles: list[Bundle] = field(default_factory=list)
    committed: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes to be read."""
        return sum(bundle.size for bundle in self.bundles)


class _Known(NamedTuple):
    """The entry of a file in a commit: the bundle, and the state of the file when it was read."""

    bundle: int
    size: int
    mtime_ns: int


def plan_bundles(
    job: Job, commits: Mapping[int, Mapping[str, Any]], size: int = BUNDLE_BYTES, *, replace: bool = False
) -> Plan:
    """The bundles of a run over a lake.

    Args:
        job: all files.
        commits: what the lake's commits say, by the number of the bundle.
        size: a bundle is full with so many bytes.
        replace: whether all that the lake has is replaced, at once and thus by one bundle.

    Raises:
        Misuse: the lake was made with other options, or a file has changed that cannot be read again alone.
    """
    groups = captures(job.inputs)
    if replace:
        return Plan([Bundle(renumbered(groups), tuple(sorted(commits)))])
    for commit in commits.values():
        if commit["version"] != VERSION or commit["configuration"] != job.configuration():
            said = ", ".join(
                f"{name}: {value!r}"
                for name, value in commit["configuration"].items()
                if job.configuration()[name] != value
            )
            raise Misuse(
                f"the tables were made with other options ({said or 'another version'}); give the same ones, another "
                "directory, or --replace"
            )
    known = {
        each["path"]: _Known(number, each["size"], each["mtime_ns"])
        for number, commit in commits.items()
        for each in commit["inputs"]
        if each["file"] != STANDARD_INPUT
    }
    plan = Plan()
    fresh: list[Files] = []
    again: set[int] = set()
    present = {each.path for each in job.inputs}
    for files in groups:
        numbers = {known[each.path].bundle for each in files if each.path in known}
        if all(_is_same(each, known) for each in files):
            continue
        if not numbers:
            fresh.append(files)
        elif _are_present(numbers, commits, present):
            again |= numbers
            plan.notes.append(f"{files[0].name}: read again with all of its bundle, as it has more or changed files")
        else:
            fresh.append(_added(files, known))
            plan.notes.append(
                f"{fresh[-1][0].name}: a capture of its own, as files before it are not among the inputs any more"
            )
    again = _connected(again, groups, known)
    if not _are_present(again, commits, present):
        raise Misuse(
            "a capture has changed, and others of its bundle are not among the inputs; name them too, or pass --replace"
        )
    reread = [
        files for files in groups if any(each.path in known and known[each.path].bundle in again for each in files)
    ]
    plan.committed = sum(
        len(files) for files in groups if files not in reread and all(each.path in known for each in files)
    )
    if reread:
        plan.bundles.append(Bundle(renumbered(reread), tuple(sorted(again))))
    plan.bundles += _cut(fresh, size)
    return plan


def _is_same(each: Input, known: Mapping[str, _Known]) -> bool:
    found = known.get(each.path)
    return found is not None and (found.size, found.mtime_ns) == (each.size, each.mtime_ns)


def _are_present(numbers: Iterable[int], commits: Mapping[int, Mapping[str, Any]], present: set[str]) -> bool:
    return all(each["path"] in present for number in numbers for each in commits[number]["inputs"])


def _added(files: Files, known: Mapping[str, _Known]) -> Files:
    """The files of a capture that no bundle has; the others must be what they were."""
    for each in files:
        if each.path in known and not _is_same(each, known):
            raise Misuse(
                f"{each.name} had {known[each.path].size:,} bytes when it was read, and has {each.size:,} now; "
                "name all files that were read with it, or pass --replace"
            )
    return tuple(each for each in files if each.path not in known)


def _connected(numbers: set[int], groups: Sequence[Files], known: Mapping[str, _Known]) -> set[int]:
    """These bundles, and all that have files of captures in them."""
    while True:
        more = set(numbers)
        for files in groups:
            found = {known[each.path].bundle for each in files if each.path in known}
            if found & more:
                more |= found
        if more == numbers:
            return numbers
        numbers = more


def _cut(groups: Iterable[Files], size: int) -> list[Bundle]:
    """Captures one after the other, in bundles of about a size, but of one capture at least."""
    bundles: list[list[Files]] = []
    total = 0
    for files in groups:
        if not bundles or total >= size:
            bundles.append([])
            total = 0
        bundles[-1].append(files)
        total += sum(each.size for each in files)
    return [Bundle(renumbered(each)) for each in bundles]
