"""The commits of a lake: what each says of its bundle, and whether the files of the lake are those that it names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from wirekit.errors import Misuse
from wirekit.pipeline.carried import STATE, StateFile
from wirekit.pipeline.folders import Folder, folder
from wirekit.pipeline.summary import FileSummary
from wirekit.tables.columns import OUTPUTS

VERSION = 3
"""Of the tables, and of commits; a table with other columns is another version."""
MANIFEST = "manifest.json"
COMMITS = "commits"
WORK = ".wirekit"
MOVES = f"{WORK}/moves.json"
"""The moves that make a bundle visible, while they are under way."""
PART = re.compile(r"part(?:-\d{5,}){1,2}\.parquet")
COMMIT = re.compile(r"\d{5,}\.json")


def other_format(path: str | os.PathLike[str]) -> str:
    """Why a lake that another version of wirekit wrote may lack columns, and the remedy; "" for any other lake."""
    lake = folder(path)
    commits = [*read_commits(lake).values()] or [json_of(lake.read(MANIFEST))]
    versions = sorted({commit["version"] for commit in commits} - {VERSION})
    if not versions:
        return ""
    written = f"another version of wirekit wrote {lake.name} (format {' and '.join(map(str, versions))}, not {VERSION})"
    return f"{written}; write its tables again with wirekit pipeline --replace"


def lake_files(path: str | os.PathLike[str], tables: Iterable[str] = OUTPUTS) -> dict[str, list[str]]:
    """The names of the files of tables of a lake, according to its commits.

    Raises:
        Misuse: for a damaged commit, or a file that is missing or not the one that a bundle wrote; with its name. Also
            while a run replaces bundles, and after such a run was killed: files of both bundles are in the tables.
    """
    lake = folder(path)
    before = lake.names(COMMITS)
    commits = read_commits(lake)
    files: dict[str, list[str]] = {table: [] for table in tables}
    sizes = dict(zip(files, lake.each(lake.sizes, files), strict=True))
    if files and (_is_replacing(lake) or not set(before).issubset(lake.names(COMMITS))):
        raise Misuse(f"a run replaces rows of {lake.name}; wait for it, or if it was killed, run the pipeline again")
    for table, names in files.items():
        for _, commit in sorted(commits.items()):
            for file in commit["tables"].get(table, {"files": ()})["files"]:
                size = sizes[table].get(file["file"].rpartition("/")[2])
                if size is None or file.get("bytes", size) != size:
                    state = "is missing" if size is None else f"has {size:,} bytes instead of {file['bytes']:,}"
                    raise Misuse(
                        f"{lake.name}/{file['file']} {state}; restore it, or write the tables again "
                        "with wirekit pipeline --replace"
                    )
                names.append(file["file"])
        if not commits:  # of an earlier version
            names += [f"{table}/{name}" for name in sorted(filter(PART.fullmatch, sizes[table]))]
    return {table: [f"{lake.name}/{name}" for name in names] for table, names in files.items()}


def _is_replacing(lake: Folder) -> bool:
    """Whether a run removes commits at this moment, or was killed while it did."""
    if lake.kind(MOVES) != "file":
        return False
    try:
        planned = json_of(lake.read(MOVES))
    except FileNotFoundError:  # the run has just ended
        return False
    sources = [each[0] for each in planned if isinstance(each, list) and each] if isinstance(planned, list) else []
    return any(str(source).startswith(f"{COMMITS}/") for source in sources)


def read_commits(lake: Folder) -> dict[int, dict[str, Any]]:
    """The commits of a lake, by the number of the bundle.

    Raises:
        Misuse: for a commit that wirekit did not write so; the text names its file.
    """
    names = [name for name in lake.names(COMMITS) if COMMIT.fullmatch(name)]
    contents = lake.each(lambda name: json_of(lake.read(f"{COMMITS}/{name}")), names)
    commits = {}
    for name, commit in zip(names, contents, strict=True):
        if not _is_commit(commit, name):
            raise Misuse(f"{lake.name}/{COMMITS}/{name} is damaged; restore it, or write the tables elsewhere again")
        commits[int(name.partition(".")[0])] = commit
    return commits


_OF_ANY_VERSION = {"version": int, "tables": dict}
_TABLE = {"rows": int, "files": [{"file": str, "rows": int, "bytes": int}]}
_TEXT = (str, type(None))
_COMMIT_SHAPE = {
    "bundle": int,
    "wirekit": str,
    "engine": str,
    "configuration": {"protocol": str, "ports": dict, "raw": bool, "values": bool},
    "inputs": [
        {"file": str, "path": str, "capture": str, "size": int, "mtime": _TEXT, "mtime_ns": int, "sha256": _TEXT}
    ],
    "changed_while_read": [str],
    "summary": dict,
    "tables": dict.fromkeys(OUTPUTS, _TABLE),
}
_OPTIONAL = {
    "continues": [str],
    "open": [str],
    STATE: [{"file": str, "bytes": int, "sha256": str, "captures": [str]}],
}


def _is_commit(commit: Any, name: str) -> bool:
    """Whether JSON has the members of the commit of this name; only this version's are known beyond the tables."""
    if not _has_shape(commit, _OF_ANY_VERSION):
        return False
    lead = "part-"
    if commit["version"] == VERSION:
        optional = {each: shape for each, shape in _OPTIONAL.items() if each in commit}
        if not _has_shape(commit, _COMMIT_SHAPE | optional) or commit_path(commit["bundle"]) != f"{COMMITS}/{name}":
            return False
        lead = f"part-{commit['bundle']:05}-"
    for table, each in commit["tables"].items():
        if not _has_shape(each, {"files": [{"file": str}]}):
            return False
        parts = {file["file"].removeprefix(f"{table}/") for file in each["files"]}
        if len(parts) < len(each["files"]) or not all(part.startswith(lead) and PART.fullmatch(part) for part in parts):
            return False
    return True


def _has_shape(value: Any, shape: Any) -> bool:
    """Whether JSON has a shape: a type, a list with the shape of its elements, or a mapping with those of members."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(_has_shape(each, shape[0]) for each in value)
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            name in value and _has_shape(value[name], each) for name, each in shape.items()
        )
    return isinstance(value, shape)


def open_captures(commits: Mapping[int, Mapping[str, Any]]) -> dict[str, list[StateFile]]:
    """The captures that another bundle can continue, with the places of their state in the lake."""
    captures: dict[str, list[StateFile]] = {}
    for _, commit in sorted(commits.items()):
        for capture in commit.get("continues", ()):
            captures.pop(capture, None)
        for each in commit.get("state", ()):
            for capture in each["captures"]:
                captures.setdefault(capture, []).append(StateFile(each["file"], each["bytes"], each["sha256"]))
    return captures


def merged(commits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Several commits merged into one."""
    ordered = sorted(commits, key=lambda commit: commit["bundle"])
    tables = {
        name: {
            "rows": sum(commit["tables"][name]["rows"] for commit in ordered),
            "files": [file for commit in ordered for file in commit["tables"][name]["files"]],
        }
        for name in OUTPUTS
    }
    summaries: dict[str, Any] = {}
    for commit in ordered:
        for name, each in commit["summary"].items():
            summaries[name] = _both(summaries[name], each) if name in summaries else each
    return {
        **{name: ordered[-1][name] for name in ("format", "version", "wirekit", "engine", "configuration")},
        "bundles": [commit["bundle"] for commit in ordered],
        "inputs": [each for commit in ordered for each in commit["inputs"]],
        "changed_while_read": [each for commit in ordered for each in commit["changed_while_read"]],
        "summary": {name: summaries[name] for name in sorted(summaries)},
        "tables": tables,
    }


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a capture that has files in two bundles."""
    both = FileSummary.from_json(one)
    both.merge(FileSummary.from_json(other))
    return both.to_json()


def commit_path(number: int) -> str:
    """The place of a bundle's commit in the lake."""
    return f"{COMMITS}/{number:05}.json"


def json_of(content: bytes) -> Any:
    """The value of JSON; None for other content, because a folder may have files of others."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
