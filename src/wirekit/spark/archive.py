"""Archives for the workers of a Spark cluster: wirekit, its protocols, their dependencies, compiled kernels.

Spark unpacks an archive in the working directory of each executor. No session lives here, and pyspark is not imported.
"""

from __future__ import annotations

import errno
import importlib
import io
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from wirekit.compiler.cache import VARIABLE
from wirekit.errors import Misuse
from wirekit.registry import ENTRY_POINTS

DIRECTORY = "wirekit-archive"
"""The directory in which an executor has the unpacked archive."""
DESCRIPTION = "wirekit-archive.json"
"""The first member: for which Python and platform the archive was made, and the version of each distribution."""

_SITE = "site"
_KERNELS = "kernels"
_EXTRAS = ("columns", "fast", "spark")
_OF_SPARK = ("pyspark", "py4j")
_PACKAGES = ("wirekit", "wirekit.schemas", "wirekit.proto", "pyspark_wirekit")


def write(path: str | os.PathLike[str]) -> dict[str, str]:
    """Writes an archive for workers with the Python and the platform of this process.

    The kernels are compiled in a process of its own, which takes about a minute. A worker with another type of
    processor does not use them, and compiles its own.

    Args:
        path: the file, ``*.tar.gz``; an existing file is replaced when the new one is complete.

    Returns:
        The version of each distribution in the archive, by name.

    Raises:
        Misuse: the name does not end in ``.tar.gz``, an extra is missing, or a protocol is installed in editable mode.
        OSError: the file cannot be written.
    """
    path = Path(path)
    if not path.name.endswith((".tar.gz", ".tgz")):
        raise Misuse(f"{path} must end in .tar.gz: Spark unpacks an archive by its name")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    distributions = _distributions()
    versions = {name: each.version for name, each in sorted(distributions.items())}
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".wirekit-") as folder:
        kernels = Path(folder, _KERNELS)
        _compile(kernels)
        unfinished = Path(folder, "archive")
        with tarfile.open(unfinished, "w:gz", compresslevel=1) as archive:
            description = json.dumps(_platform() | {"distributions": versions}, indent=2).encode()
            member = tarfile.TarInfo(DESCRIPTION)
            member.size = len(description)
            archive.addfile(member, io.BytesIO(description))
            archive.add(kernels, _KERNELS)
            for name, file in _files(distributions):
                archive.add(file, f"{_SITE}/{name}", recursive=False)
        os.replace(unfinished, path)
    return versions


def settings(path: str | os.PathLike[str]) -> dict[str, str]:
    """The Spark settings by which executors find the content of an archive, for a new session.

    Raises:
        Misuse: the file is not such an archive, or was made for another version of Python or another platform.
        OSError: the file cannot be read.
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            member = archive.next()
            file = archive.extractfile(member) if member is not None and member.name == DESCRIPTION else None
            description = json.loads(file.read()) if file is not None else None
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise Misuse(f"{os.fspath(path)} is not an archive of `wirekit archive`: {error}") from error
    if description is None:
        raise Misuse(f"{os.fspath(path)} is not an archive of `wirekit archive`")
    for name, value in _platform().items():
        if description.get(name) != value:
            raise Misuse(f"{os.fspath(path)} was written for {name} {description.get(name)}; this process has {value}")
    return {
        "spark.archives": f"{Path(path).resolve()}#{DIRECTORY}",
        "spark.executorEnv.PYTHONPATH": f"{DIRECTORY}/{_SITE}",
        f"spark.executorEnv.{VARIABLE}": f"{DIRECTORY}/{_KERNELS}",
    }


def _platform() -> dict[str, str]:
    return {"python": str(sys.implementation.cache_tag), "platform": sysconfig.get_platform()}


def _distributions() -> dict[str, metadata.Distribution]:
    """wirekit, the packages that name protocols, and their installed dependencies, by name."""
    packages = {entry.dist.name for entry in metadata.entry_points(group=ENTRY_POINTS) if entry.dist is not None}
    for name in sorted(packages):
        if _editable(metadata.distribution(name)):
            raise Misuse(
                f"{name} is installed in editable mode; install it without -e, so that its files can be listed"
            )
    distributions: dict[str, metadata.Distribution] = {}
    pending = [("wirekit", _EXTRAS), *((name, ()) for name in packages)]
    while pending:
        name, extras = pending.pop()
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another platform, or an extra that is not installed
        name = distribution.name
        if name in distributions or name in _OF_SPARK:
            continue
        distributions[name] = distribution
        for requirement in distribution.requires or ():
            condition = re.search(r"extra *== *['\"]([\w.-]+)", requirement)
            if condition is None or condition[1] in extras:
                pending.append((_name(requirement), ()))
    for extra, module in (("columns", "numba"), ("spark", "pyarrow")):
        if module not in distributions:
            raise Misuse(f"an archive for workers needs {module}: pip install 'wirekit[{extra}]'")
    return distributions


def _name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    return match[0] if match else ""


def _editable(distribution: metadata.Distribution) -> bool:
    origin: Any = json.loads(distribution.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable"))


def _files(distributions: dict[str, metadata.Distribution]) -> Iterator[tuple[str, Path]]:
    """The files of the distributions by their names in a directory of modules, each once.

    Those of wirekit are found by its packages: an editable installation has them in several places.
    """
    names: set[str] = set()
    for package in _PACKAGES:
        (place,) = importlib.import_module(package).__path__
        for file in sorted(Path(place).rglob("*")):
            name = f"{package.replace('.', '/')}/{file.relative_to(place)}"
            if file.is_file() and _usable(file) and name not in names:
                names.add(name)
                yield name, file
    for owner, distribution in distributions.items():
        for each in distribution.files or ():
            name = each.as_posix()
            ours = owner == "wirekit" and ".dist-info/" not in name
            if ours or each.parts[0] == ".." or each.is_absolute():
                continue
            file = Path(str(distribution.locate_file(each)))
            if name not in names and file.is_file() and _usable(file):
                names.add(name)
                yield name, file


def _usable(file: Path) -> bool:
    """Whether this Python uses a file: bytecode of another version is left out."""
    return file.suffix != ".pyc" or file.stem.endswith(str(sys.implementation.cache_tag))


def _compile(folder: Path) -> None:
    """Compiles the kernels into a directory, as ``wirekit warm`` does."""
    environment = os.environ | {VARIABLE: str(folder)}
    run = subprocess.run(
        [sys.executable, "-m", "wirekit", "warm"], env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise Misuse(f"the kernels cannot be compiled: {run.stderr.strip()}")
