"""Stores compiled functions as modules on disk, so that each machine compiles them once.

They are the interpreters of programs, kernels for single layouts, and the loops of the columns road.

The directory is ``WIREKIT_CACHE_DIR``, or else ``wirekit`` in the user's cache directory (``XDG_CACHE_HOME`` or
``~/.cache``; ``~/Library/Caches`` on macOS). The name of a module is a hash of its text. The first lines of the text
name everything that the machine code depends on: the versions of wirekit, numba and Python, the processor, and the
functions that kernels call. So a file never changes, processes that start at the same time write the same text, and
files can be deleted at any time. Numba stores the machine code beside the module, in ``__pycache__``. A machine code
file that a crash has truncated is deleted and compiled again.

Machine code is loaded by unpickling, which can run any code. So the directory and its files must belong to the user or
to root, and no other user may write there. Otherwise, or if the directory or the disk cannot be written, each process
compiles the kernels again; a RuntimeWarning gives the reason once per process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import linecache
import os
import pickle
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

VARIABLE = "WIREKIT_CACHE_DIR"
KERNEL = "kernel"
"""The kind of the modules that scan one layout."""

_lock = threading.Lock()
_listeners: list[Callable[[str], object]] = []
_modules: dict[str, ModuleType] = {}


def directory() -> Path | None:
    """The directory of generated modules; None if the user has no home directory."""
    configured = os.environ.get(VARIABLE)
    if configured:
        return Path(configured)
    if sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "wirekit"
    except RuntimeError:  # no home
        return None


@contextlib.contextmanager
def listening(listener: Callable[[str], object]) -> Iterator[None]:
    """Calls a listener with the name of each function before this machine compiles it for the first time."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def module_text(source: str) -> str:
    """The text of the module of a generated kernel: the dependencies of its machine code, then the source."""
    import numba

    from wirekit import __version__
    from wirekit.compiler.kernels import crc

    settings: Any = numba.config
    dependencies = [
        f"wirekit {__version__}, numba {numba.__version__}, {sys.implementation.cache_tag}, processor {_processor()}",
        f"called {_called()}, checksums {crc.FINGERPRINT}, bounds check {settings.BOUNDSCHECK}",
    ]
    return "".join(f"# {line}\n" for line in dependencies) + source


CALLED = {
    "": "varints",
    "compiler/kernels": "arrays parts protobuf reads",
    "runtime": "interpreter kernel memory opcodes shared_steps write_opcodes writing",
}
"""Modules with functions that kernels call, or with tables that they contain."""


@functools.cache
def _processor() -> str:
    """A hash of the instructions that the processor has."""
    from numba.core.registry import cpu_target

    return hashlib.sha256(repr(cpu_target.target_context.codegen().magic_tuple()).encode()).hexdigest()[:12]


@functools.cache
def _called() -> str:
    """A hash of the functions that kernels call; numba itself checks only the text of the kernel's own module."""
    wirekit = Path(__file__).parents[1]
    sources = (
        wirekit.joinpath(folder, f"{name}.py").read_text(encoding="utf-8")
        for folder, names in CALLED.items()
        for name in names.split()
    )
    return hashlib.sha256("".join(sources).encode()).hexdigest()[:12]


def function(source: str, name: str = "scan", kind: str = "columns") -> Callable[..., Any]:
    """The compiled function of a generated source; its first call compiles it.

    Args:
        source: the source. A function that is called with arrays of several types needs a source for each of them, if
            only with another comment, because numba's index of machine code for several types is not safe if several
            processes add to it.
        name: the name of the function in the source.
        kind: the beginning of the module's name, after ``wirekit_``.
    """
    with _lock:
        module = _modules.get(source)
        if module is None:
            module = _modules[source] = _module(module_text(source), kind)
    compiled: Callable[..., Any] = getattr(module, name)
    return compiled


BUILDER = """\
from numba import njit

from wirekit.runtime.writing import build_records


@njit(nogil=True, cache=True)
def build(code, registers, table, state):
    return build_records(code, registers, table, state)
"""
"""The module of the interpreter of write programs."""


@functools.cache
def interpreter() -> Callable[..., Any]:
    """The interpreter of read programs; each machine compiles it once."""
    from wirekit.runtime.loop import module_text as loop

    return function(loop())


def is_compiled(source: str, kind: str = "columns") -> bool:
    """Whether this process or the disk has machine code of the function of a source, as for ``function``."""
    if source in _modules:
        return True
    folder = directory()
    name = _name(module_text(source), kind)
    return folder is not None and next((folder / "__pycache__").glob(f"{name}.*.nbc"), None) is not None


def interpreter_is_compiled() -> bool:
    """Whether the interpreter of read programs is compiled."""
    from wirekit.runtime.loop import module_text as loop

    return is_compiled(loop())


def has_kernels() -> bool:
    """Whether this process, or another one before the first call, has compiled a kernel of one layout."""
    return any(each.__name__.startswith(f"wirekit_{KERNEL}_") for each in _modules.values()) or _has_stored_kernels()


@functools.cache
def _has_stored_kernels() -> bool:
    folder = directory()
    return folder is not None and next(folder.glob(f"wirekit_{KERNEL}_*.py"), None) is not None


def _name(text: str, kind: str) -> str:
    return f"wirekit_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def builder() -> Callable[..., Any]:
    """The interpreter of write programs; each machine compiles it once."""
    return function(BUILDER, "build")


def _module(text: str, kind: str) -> ModuleType:
    name = _name(text, kind)
    path = _stored(name, text)
    where = f"<{name}>" if path is None else str(path)
    code = text.replace("cache=True", "cache=False")  # see _keep
    linecache.cache[where] = (len(code), None, code.splitlines(keepends=True), where)
    module = ModuleType(name)
    sys.modules[name] = module  # numba finds a cached function's globals by its module's name
    exec(compile(code, where, "exec"), vars(module))  # the source is generated, of numbers and names
    if path is not None:
        _keep(module)
    return module


def _stored(name: str, text: str) -> Path | None:
    """The file of a module, written if it did not exist; None if the directory is not safe or cannot be written."""
    folder = directory()
    if folder is None:
        return None
    path = folder / f"{name}.py"
    machine_code = folder / "__pycache__"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        reason = _unsafe(folder, machine_code)
        if not reason:
            _write(path, text)
            machine_code.mkdir(mode=0o700, exist_ok=True)
            files = list(machine_code.glob(f"{name}.*.nb[ci]"))
            reason = _unsafe(path, *files)
        if not reason:
            _forget_cut(files)
            return path
    except OSError as error:
        reason = f"{error.filename or folder} cannot be written: {error.strerror}"
    _warn(reason)
    return None


def _unsafe(*paths: Path) -> str:
    """The reason why another user may have written these files, or "". Paths that do not exist are safe."""
    for path in paths:
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if status.st_uid not in (0, os.geteuid()):
            return f"{path} belongs to another user"
        writers = stat.S_IWGRP | stat.S_IWOTH if stat.S_ISDIR(status.st_mode) else stat.S_IWOTH
        if status.st_mode & writers and not stat.S_ISLNK(status.st_mode):
            return f"other users may write to {path}; look at its files, then run chmod go-w on it"
    return next(_exposed(paths[0].parent), "")


def _exposed(folder: Path) -> Iterator[str]:
    """The directories above a folder in which any user can replace it."""
    for around in (folder, *folder.resolve().parents):
        mode = around.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            yield f"other users may write to {around}"


_warned: set[str] = set()


def _warn(reason: str) -> None:
    """Warns once that compiled kernels are not stored, with the reason."""
    if not _warned:
        _warned.add(reason)
        text = f"each process compiles the kernels again, which takes seconds: {reason}"
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def _keep(module: ModuleType) -> None:
    """Makes numba store the machine code of a module's functions beside the module, if the directory can be written.

    Numba's own option ``cache=True`` uses the first directory that can be written, which may be another one, and raises
    OSError from the call of a kernel if the disk is full.
    """
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator
    from numba.core.dispatcher import Dispatcher
    from numba.core.runtime.nrt import rtsys

    from wirekit.compiler.kernels.parts import PartCompiler

    class Place(InTreeCacheLocator):
        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            return cls(py_func, py_file)  # even if the directory is read-only: it may contain machine code

    class Beside(CompileResultCacheImpl):
        _locator_classes: list[type[object]] = [Place]  # noqa: RUF012  # so it is declared there

    class Cache(FunctionCache):
        _impl_class = Beside

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            rtsys.initialize(target_context)
            overload = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
            if overload is None:
                for each in list(_listeners):
                    each(self._name)
            return overload

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]
            except OSError as error:
                _warn(f"{self.cache_path} cannot be written: {error.strerror}")

    caching: Any = Cache
    for each in vars(module).values():
        if not isinstance(each, Dispatcher) or each.py_func.__module__ != module.__name__:
            continue
        if not issubclass(vars(each)["_compiler"].pipeline_class, PartCompiler):
            vars(each)["_cache"] = caching(each.py_func)


def _forget_cut(files: list[Path]) -> None:
    """Deletes truncated files of machine code, on which numba would fail."""
    for path in files:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - len(pickle.STOP), 0))
            if file.read() != pickle.STOP:
                path.unlink()


def _write(path: Path, text: str) -> None:
    """Writes a file atomically if it does not exist.

    An existing file is not touched: numba considers its machine code outdated if the file's time changes.
    """
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        now = int(time.time())
        os.utime(temporary, (now, now))  # whole seconds: an archive of the directory keeps no parts of them
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
