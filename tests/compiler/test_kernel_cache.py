"""Compiled kernels are kept on disk, for all processes of a machine, and whatever becomes of the files does no harm."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from wirekit.compiler import cache as columns_cache
from wirekit.runtime.loop import module_text


def run(script: str, *arguments: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    completed = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=200,
    )
    return completed.stdout.strip()


SOURCE = "from numba import njit\n@njit(cache=True)\ndef scan(x): return x + 1\n"
IN_THE_PROCESS, FROM_THE_CACHE = "2 compiled", "2 from the cache"
ANEW = "each process compiles the kernels again"


class Adding:
    """A process that compiles ``SOURCE``, or takes it from the cache, and calls it.

    It is a copy of this one, which has imported all that takes time, and knows of no kernel yet.

    Args:
        most: bytes that a file may have.
    """

    def __init__(self, most: int = -1, **environment: str) -> None:
        columns_cache.module_text(SOURCE)  # imports it
        self._read, write = os.pipe()
        self._process = os.fork()
        if self._process:
            os.close(write)
            return
        try:
            os.write(write, self._added(most, environment).encode())
        finally:
            os._exit(0)  # whoever started it misses the words of one that failed

    @staticmethod
    def _added(most: int, environment: dict[str, str]) -> str:
        os.environ.update(environment)
        columns_cache._modules.clear()
        columns_cache._warned.clear()
        if most >= 0:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most,) * 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function = columns_cache.function(SOURCE)
            value = function(1)
        how = "from the cache" if sum(function.stats.cache_hits.values()) else "compiled"  # type: ignore[attr-defined]
        return f"{value} {how}\0" + "\n".join(str(each.message) for each in caught)

    def output(self) -> tuple[str, str]:
        """What it came to, and its warnings."""
        with open(self._read, encoding="utf-8") as pipe:
            out, _, warning = pipe.read().partition("\0")
        os.waitpid(self._process, 0)
        return out, warning


def output_of_process(**environment: str) -> tuple[str, str]:
    """What such a process says."""
    return Adding(**environment).output()


SCANS = """
import struct, wirekit
from wirekit.compiler import cache as columns_cache
from wirekit.runtime.loop import module_text
batch = wirekit.columns("kafka.offset_index", struct.pack(">iiii", 1, 2, 3, 4))
function = columns_cache.interpreter()
print(batch["position"].to_pylist(), "from the cache" if sum(function.stats.cache_hits.values()) else "compiled")
"""


def test_importing_wirekit_needs_neither_numba_nor_pyarrow() -> None:
    script = "import sys, wirekit; print([n for n in ('numba', 'pyarrow', 'numpy') if n in sys.modules])"
    assert run(script) == "[]"


def test_several_processes_may_start_at_once(tmp_path: Path) -> None:
    environment = {columns_cache.VARIABLE: str(tmp_path / "new" / "cache")}
    for process in [Adding(**environment) for _ in range(4)]:
        out, warning = process.output()
        assert out in (IN_THE_PROCESS, FROM_THE_CACHE)
        assert not warning
    folder = tmp_path / "new" / "cache"
    assert len(list(folder.glob("*.py"))) == 1
    assert not list(folder.glob("*.tmp"))
    assert folder.stat().st_mode & 0o077 == 0
    assert output_of_process(**environment) == (FROM_THE_CACHE, "")


def test_the_interpreter_is_kept() -> None:
    """In the directory of these tests, so that it is compiled once for all of them."""
    assert run(SCANS).startswith("[2, 4]")
    assert run(SCANS) == "[2, 4] from the cache"


def test_a_damaged_module_in_the_cache_is_written_anew(tmp_path: Path) -> None:
    environment = {columns_cache.VARIABLE: str(tmp_path)}
    assert output_of_process(**environment) == (IN_THE_PROCESS, "")
    (path,) = tmp_path.glob("*.py")
    path.write_text("half of")
    assert output_of_process(**environment)[0] in (IN_THE_PROCESS, FROM_THE_CACHE)
    assert path.read_text() == columns_cache.module_text(SOURCE)


@pytest.mark.parametrize("variable", [columns_cache.VARIABLE, "XDG_CACHE_HOME"])
def test_a_directory_that_cannot_be_written_is_not_needed(tmp_path: Path, variable: str) -> None:
    (tmp_path / "file").touch()
    out, warning = output_of_process(**{columns_cache.VARIABLE: "", variable: str(tmp_path / "file")})
    assert out == IN_THE_PROCESS
    assert warning.count(ANEW) == 1
    assert "cannot be written" in warning


@pytest.mark.parametrize("most", [0, 300, 600, 3000])
def test_a_full_disk_costs_compilation_and_nothing_else(tmp_path: Path, most: int) -> None:
    """No file may grow beyond so many bytes: the module is not written, or its machine code, or its index."""
    out, warning = Adding(most, **{columns_cache.VARIABLE: str(tmp_path)}).output()
    assert out == IN_THE_PROCESS
    assert warning.count(ANEW) == 1
    assert output_of_process(**{columns_cache.VARIABLE: str(tmp_path)}) == (IN_THE_PROCESS, "")
    assert output_of_process(**{columns_cache.VARIABLE: str(tmp_path)}) == (FROM_THE_CACHE, "")


class Planted:
    """Unpickling it makes a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def opened_to_all(folder: Path) -> None:
    folder.chmod(0o777)


def inner_opened_to_group(folder: Path) -> None:
    (folder / "__pycache__").chmod(0o775)


def around_opened_to_all(folder: Path) -> None:
    folder.parent.chmod(0o777)


def given_away(folder: Path) -> None:
    os.chown(folder, 12345, -1)


def file_given_away(folder: Path) -> None:
    for path in (folder / "__pycache__").glob("*.nbi"):
        os.chown(path, 12345, -1)


OTHERS = [opened_to_all, inner_opened_to_group, around_opened_to_all, given_away, file_given_away]


@pytest.mark.parametrize("change", OTHERS)
def test_a_file_that_other_users_may_have_written_is_not_run(tmp_path: Path, change: Callable[[Path], None]) -> None:
    if change in (given_away, file_given_away) and os.geteuid():
        pytest.skip("only root gives files away")
    folder, mark = tmp_path / "around" / "cache", tmp_path / "mark"
    environment = {columns_cache.VARIABLE: str(folder)}
    assert output_of_process(**environment) == (IN_THE_PROCESS, "")
    for path in (folder / "__pycache__").glob("*.nbi"):
        version = pickle.loads(path.read_bytes())  # just written
        path.write_bytes(pickle.dumps(version) + pickle.dumps(Planted(mark)))
    change(folder)
    out, warning = output_of_process(**environment)
    assert not mark.exists()
    assert out == IN_THE_PROCESS
    assert warning.count(ANEW) == 1
    assert "other users may write" in warning or "belongs to another user" in warning


def test_a_sticky_directory_that_anybody_may_write_may_hold_the_cache(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    environment = {columns_cache.VARIABLE: str(tmp_path / "tmp" / "mine")}
    assert output_of_process(**environment) == (IN_THE_PROCESS, "")
    assert output_of_process(**environment) == (FROM_THE_CACHE, "")


def test_numba_is_not_led_to_another_directory(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    environment = {columns_cache.VARIABLE: str(tmp_path / "mine"), "NUMBA_CACHE_DIR": str(elsewhere)}
    assert output_of_process(**environment) == (IN_THE_PROCESS, "")
    assert not elsewhere.exists()
    assert list((tmp_path / "mine" / "__pycache__").glob("*.nbc"))


@pytest.mark.parametrize(("ending", "share"), [("nbi", 0), ("nbc", 0.5)])
def test_machine_code_that_was_cut_is_compiled_anew(tmp_path: Path, ending: str, share: float) -> None:
    environment = {columns_cache.VARIABLE: str(tmp_path)}
    assert output_of_process(**environment) == (IN_THE_PROCESS, "")
    for path in (tmp_path / "__pycache__").glob(f"*.{ending}"):
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))].rstrip(b"."))
    assert output_of_process(**environment) == (IN_THE_PROCESS, "")
    assert output_of_process(**environment) == (FROM_THE_CACHE, "")


def test_the_text_of_a_kernel_is_not_kept_after_its_program() -> None:
    """A process may see many layouts and choices of columns; each text has up to some 100 KB."""

    class Text(str):
        pass

    reader = Text("# reads a record\n")
    reference = weakref.ref(reader)
    assert reader in module_text(reader)
    del reader
    assert reference() is None


def test_numba_without_a_compiler_is_a_misuse() -> None:
    script = (
        "import wirekit\ntry: wirekit.columns('kafka.message_set', b'')\nexcept wirekit.Misuse as error: print(error)"
    )
    assert run(script, NUMBA_DISABLE_JIT="1").endswith("NUMBA_DISABLE_JIT is set; unset it")
