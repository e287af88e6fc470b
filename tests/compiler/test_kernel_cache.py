"""Compiled kernels are kept on disk, for all processes of a machine, and whatever becomes of the files does no harm."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wirekit.compiler import cache as columns_cache


def run(script: str, *arguments: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=200,
    )
    return done.stdout.strip()


SOURCE = "from numba import njit\n@njit(cache=True)\ndef scan(x): return x + 1\n"
ADDS = f"""
from wirekit.compiler import cache as columns_cache
function = columns_cache.function({SOURCE!r}, "int32")
print(function(1), "from the cache" if sum(function.stats.cache_hits.values()) else "compiled")
"""
IN_THE_PROCESS, FROM_THE_CACHE = "2 compiled", "2 from the cache"
SCANS = """
import struct, wirekit
from wirekit.compiler import cache as columns_cache
batch = wirekit.columns("kafka.offset_index", struct.pack(">iiii", 1, 2, 3, 4))
function = columns_cache.interpreter()
print(batch["position"].to_pylist(), "from the cache" if sum(function.stats.cache_hits.values()) else "compiled")
"""


def test_importing_wirekit_needs_neither_numba_nor_pyarrow() -> None:
    script = "import sys, wirekit; print([n for n in ('numba', 'pyarrow', 'numpy') if n in sys.modules])"
    assert run(script) == "[]"


def test_several_processes_may_start_at_once(tmp_path: Path) -> None:
    environment = os.environ | {columns_cache.VARIABLE: str(tmp_path / "new" / "cache")}
    started = [
        subprocess.Popen([sys.executable, "-c", ADDS], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in started:
        out, _ = process.communicate(timeout=200)
        assert process.returncode == 0
        assert out.startswith("2 ")
    folder = tmp_path / "new" / "cache"
    assert len(list(folder.glob("*.py"))) == 1
    assert not list(folder.glob("*.tmp"))
    assert folder.stat().st_mode & 0o077 == 0
    assert run(ADDS, **{columns_cache.VARIABLE: str(folder)}) == FROM_THE_CACHE


def test_the_interpreter_is_kept() -> None:
    """In the directory of these tests, so that it is compiled once for all of them."""
    assert run(SCANS).startswith("[2, 4]")
    assert run(SCANS) == "[2, 4] from the cache"


def test_a_damaged_module_in_the_cache_is_written_anew(tmp_path: Path) -> None:
    environment = {columns_cache.VARIABLE: str(tmp_path)}
    assert run(ADDS, **environment) == IN_THE_PROCESS
    (path,) = tmp_path.glob("*.py")
    path.write_text("half of")
    assert run(ADDS, **environment).startswith("2 ")
    assert path.read_text() == columns_cache.module_text(SOURCE, "int32")


ANEW = "kernels are compiled in each process anew"


def said(script: str, **environment: str) -> tuple[str, str]:
    """What a fresh interpreter prints, and says on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize("variable", [columns_cache.VARIABLE, "XDG_CACHE_HOME"])
def test_a_directory_that_cannot_be_written_is_not_needed(tmp_path: Path, variable: str) -> None:
    (tmp_path / "file").touch()
    out, warning = said(ADDS, **{columns_cache.VARIABLE: "", variable: str(tmp_path / "file")})
    assert out == IN_THE_PROCESS
    assert warning.count(ANEW) == 1
    assert "cannot be written" in warning


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
"""


@pytest.mark.parametrize("most", [0, 300, 600, 3000])
def test_a_full_disk_costs_compilation_and_nothing_else(tmp_path: Path, most: int) -> None:
    """No file may grow beyond so many bytes: the module is not written, or its machine code, or its index."""
    script = FULL.replace("sys.argv[1]", str(most)) + ADDS
    out, warning = said(script, **{columns_cache.VARIABLE: str(tmp_path)})
    assert out == IN_THE_PROCESS
    assert warning.count(ANEW) == 1
    assert said(ADDS, **{columns_cache.VARIABLE: str(tmp_path)}) == (IN_THE_PROCESS, "")
    assert said(ADDS, **{columns_cache.VARIABLE: str(tmp_path)}) == (FROM_THE_CACHE, "")


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
def test_what_others_may_have_written_is_not_run(tmp_path: Path, change: Callable[[Path], None]) -> None:
    if change in (given_away, file_given_away) and os.geteuid():
        pytest.skip("only root gives files away")
    folder, mark = tmp_path / "around" / "cache", tmp_path / "mark"
    environment = {columns_cache.VARIABLE: str(folder)}
    assert said(ADDS, **environment) == (IN_THE_PROCESS, "")
    for path in (folder / "__pycache__").glob("*.nbi"):
        version = pickle.loads(path.read_bytes())  # just written
        path.write_bytes(pickle.dumps(version) + pickle.dumps(Planted(mark)))
    change(folder)
    out, warning = said(ADDS, **environment)
    assert not mark.exists()
    assert out == IN_THE_PROCESS
    assert warning.count(ANEW) == 1
    assert "others may write" in warning or "belongs to another user" in warning


def test_a_directory_that_anybody_may_write_without_taking_what_is_there_may_be_around(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    environment = {columns_cache.VARIABLE: str(tmp_path / "tmp" / "mine")}
    assert said(ADDS, **environment) == (IN_THE_PROCESS, "")
    assert said(ADDS, **environment) == (FROM_THE_CACHE, "")


def test_numba_is_not_led_to_another_directory(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    environment = {columns_cache.VARIABLE: str(tmp_path / "mine"), "NUMBA_CACHE_DIR": str(elsewhere)}
    assert said(ADDS, **environment) == (IN_THE_PROCESS, "")
    assert not elsewhere.exists()
    assert list((tmp_path / "mine" / "__pycache__").glob("*.nbc"))


@pytest.mark.parametrize(("ending", "left"), [("nbi", 0), ("nbc", 0.5)])
def test_machine_code_that_was_cut_is_compiled_anew(tmp_path: Path, ending: str, left: float) -> None:
    environment = {columns_cache.VARIABLE: str(tmp_path)}
    assert run(ADDS, **environment) == IN_THE_PROCESS
    for path in (tmp_path / "__pycache__").glob(f"*.{ending}"):
        data = path.read_bytes()
        path.write_bytes(data[: int(left * len(data))].rstrip(b"."))
    assert run(ADDS, **environment) == IN_THE_PROCESS
    assert run(ADDS, **environment) == FROM_THE_CACHE
