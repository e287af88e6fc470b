"""Compiled kernels are kept on disk, for all processes of a machine, and whatever becomes of the files does no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns import source


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


SCANS = """
import struct, wirekit
from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns import source
batch = wirekit.columns("kafka.offset_index", struct.pack(">iiii", 1, 2, 3, 4))
function = columns_cache.function(source("kafka.offset_index"), "int32", "scan_block")
print(batch["position"].to_pylist(), "from the cache" if sum(function.stats.cache_hits.values()) else "compiled")
"""


def test_importing_wirekit_needs_neither_numba_nor_pyarrow() -> None:
    script = "import sys, wirekit; print([n for n in ('numba', 'pyarrow', 'numpy') if n in sys.modules])"
    assert run(script) == "[]"


def test_several_processes_may_start_at_once(tmp_path: Path) -> None:
    environment = os.environ | {columns_cache.VARIABLE: str(tmp_path / "new" / "cache")}
    started = [
        subprocess.Popen([sys.executable, "-c", SCANS], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in started:
        out, _ = process.communicate(timeout=200)
        assert process.returncode == 0
        assert out.startswith("[2, 4]")
    folder = tmp_path / "new" / "cache"
    assert len(list(folder.glob("*.py"))) == 1
    assert not list(folder.glob("*.tmp"))
    assert folder.stat().st_mode & 0o077 == 0
    assert run(SCANS, **{columns_cache.VARIABLE: str(folder)}) == "[2, 4] from the cache"


def test_a_damaged_module_in_the_cache_is_written_anew(kernels: Path) -> None:
    columns_cache._module(columns_cache.module_text(source("kafka.offset_index"), "int32"))
    (path,) = [
        p
        for p in kernels.glob("*.py")
        if p.read_text() == columns_cache.module_text(source("kafka.offset_index"), "int32")
    ]
    path.write_text("half of")
    assert run(SCANS).startswith("[2, 4]")
    assert path.read_text() == columns_cache.module_text(source("kafka.offset_index"), "int32")


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    script = SCANS.replace("wirekit.columns(", "print(wirekit.Misuse) or wirekit.columns(", 1)
    environment = {columns_cache.VARIABLE: "", "XDG_CACHE_HOME": str(tmp_path / "file")}
    assert "[2, 4] compiled" in run(script, **environment)
    caught = "import wirekit\ntry: wirekit.columns('kafka.offset_index', b'')\nexcept wirekit.Misuse as e: print(e)"
    named = run(caught, **{columns_cache.VARIABLE: str(tmp_path / "file")})
    assert named.startswith("WIREKIT_CACHE_DIR names ")


@pytest.mark.parametrize(("ending", "left"), [("nbi", 0), ("nbc", 0.5)])
def test_machine_code_that_was_cut_is_compiled_anew(tmp_path: Path, ending: str, left: float) -> None:
    environment = {columns_cache.VARIABLE: str(tmp_path)}
    assert run(SCANS, **environment) == "[2, 4] compiled"
    for path in (tmp_path / "__pycache__").glob(f"*.{ending}"):
        data = path.read_bytes()
        path.write_bytes(data[: int(left * len(data))].rstrip(b"."))
    assert run(SCANS, **environment) == "[2, 4] compiled"
    assert run(SCANS, **environment) == "[2, 4] from the cache"
