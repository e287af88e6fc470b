"""Generated kernels as modules on disk, so that they are compiled once a machine and not once a process.

The directory is ``WIREKIT_CACHE_DIR``, or else ``wirekit`` in the user's cache directory (``XDG_CACHE_HOME`` or
``~/.cache``; ``~/Library/Caches`` on macOS). A module's name is a hash of its text, whose first lines name all that
its machine code depends on: the versions of wirekit, numba and Python, the processor, what the kernels call. So a file
is never changed, processes that start at once write the same, and what is no longer used can be deleted at any time.
Numba keeps the machine code beside it, in ``__pycache__``. It is loaded as code is: let nobody else write there.
What a crash or a full disk has cut of it is deleted, and compiled anew.

Where the user's cache directory cannot be written, kernels are compiled in each process anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import linecache
import os
import pickle
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from wirekit.errors import Misuse

VARIABLE = "WIREKIT_CACHE_DIR"

_lock = threading.Lock()
_modules: dict[tuple[str, str], ModuleType] = {}


def directory() -> Path | None:
    """Where generated modules are kept; None where there is no such place."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "wirekit"
    except RuntimeError:  # no home
        return None


def module_text(source: str, offsets: str) -> str:
    """The text of the module of a generated kernel: what its machine code depends on, and the source.

    Args:
        offsets: the type of the arrays of offsets. Each type has a module of its own, as numba's index of machine code
            for several types is not safe when several processes add to it.
    """
    import numba
    from numba.core.registry import cpu_target

    from wirekit import __version__
    from wirekit.compiler.kernels import arrays, crc, message, protobuf, protobuf_writes, reads, values, writes

    settings: Any = numba.config
    processor = hashlib.sha256(repr(cpu_target.target_context.codegen().magic_tuple()).encode()).hexdigest()[:12]
    told = [
        f"wirekit {__version__}, numba {numba.__version__}, {sys.implementation.cache_tag}, processor {processor}",
        f"checksums {crc.FINGERPRINT}, reads {reads.FINGERPRINT}, bounds check {settings.BOUNDSCHECK}",
        f"blocks {message.FINGERPRINT}, messages {protobuf.FINGERPRINT}",
        f"arrays {arrays.FINGERPRINT}, writes {writes.FINGERPRINT} {protobuf_writes.FINGERPRINT}",
        f"values {values.FINGERPRINT}",
        f"offsets {offsets}",
    ]
    source = re.sub(r"\bint32_(\w+) as offsets_", rf"{offsets}_\1 as offsets_", source)
    return "".join(f"# {line}\n" for line in told) + source


def function(source: str, offsets: str, name: str = "scan") -> Callable[..., Any]:
    """The compiled function of a generated source; the same arguments give the same function.

    Args:
        name: what the source calls it.
        offsets: the type of the arrays of offsets that it will be called with, ``int32`` or ``int64``.

    Raises:
        Misuse: when the directory that WIREKIT_CACHE_DIR names cannot be written.
    """
    with _lock:
        found = _modules.get((source, offsets))
        if found is None:
            found = _modules[source, offsets] = _module(module_text(source, offsets))
    made: Callable[..., Any] = getattr(found, name)
    return made


def _module(text: str) -> ModuleType:
    name = f"wirekit_columns_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    folder = directory()
    path = None if folder is None else folder / f"{name}.py"
    if path is not None:
        try:
            _write(path, text)
        except OSError as error:
            if os.environ.get(VARIABLE):
                raise Misuse(f"{VARIABLE} names {folder}, which cannot be written: {error}") from None
            path = None
    if path is None:
        return _uncached(name, text)
    _forget_cut(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return _uncached(name, text)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba finds a cached function's globals by its module's name
    spec.loader.exec_module(module)
    return module


def _forget_cut(path: Path) -> None:
    """Deletes the machine code of a module as far as it was not written to its end, which numba would fail on."""
    for made in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ci]"):
        with contextlib.suppress(FileNotFoundError), made.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - len(pickle.STOP), 0))
            if file.read() != pickle.STOP:
                made.unlink()


def _uncached(name: str, text: str) -> ModuleType:
    text = text.replace("cache=True", "cache=False")
    where = f"<{name}>"
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, where, "exec"), vars(module))  # the source is generated, of numbers and names
    return module


def _write(path: Path, text: str) -> None:
    """Writes a file that is not there yet, so that nobody ever sees a part of it.

    One that is there stays as it is: numba takes machine code for outdated when the file's time changes.
    """
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            os.link(temporary, path)
        except FileExistsError:
            if path.read_text(encoding="utf-8") != text:  # damaged: another process would have written the same
                os.replace(temporary, path)
        except OSError:  # a file system without links
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
