"""Entry points of installed packages, which declare protocols of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from wirekit.errors import raised

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "wirekit.protocols"


def entry_points() -> Iterable[EntryPoint]:
    """The entry points that declare protocols."""
    if not _packages_may_add():
        return ()
    from importlib import metadata  # slow to import, and needed only here

    return metadata.entry_points(group=ENTRY_POINTS)


def refusal(entry: EntryPoint, error: BaseException) -> str:
    """Why an entry point gives no protocol."""
    package = f" of {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
    entry_point = f"the entry point {entry.name} = {entry.value}{package}"
    return f"{entry_point} does not give a protocol: {raised(error)}"


def _packages_may_add() -> bool:
    """Whether ``importlib.metadata``, which is slow to import, can find our entry points; False is certain."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    return any(_may_add(place or os.curdir) for place in sys.path)


def _may_add(place: str) -> bool:
    """Whether an entry of ``sys.path`` may contain such entry points."""
    try:
        names = os.listdir(place)
    except OSError:
        return os.path.isfile(place)  # an archive
    for name in names:
        if name.endswith(".egg"):
            return True
        if name.endswith((".dist-info", ".egg-info")):
            try:
                with open(os.path.join(place, name, "entry_points.txt"), "rb") as file:
                    if ENTRY_POINTS.encode() in file.read():
                        return True
            except OSError:
                continue  # the package has no entry points
    return False
