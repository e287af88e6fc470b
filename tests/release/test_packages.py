"""What is built is whole: wheel and sdist have all files, and each extra alone is enough for what it is for.

The packages that an extra does not bring are hidden from the import. `make test-release` does the same in environments
of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import wirekit
from tests.release.parts import BROUGHT, OPTIONAL, USED

ROOT = Path(__file__).parents[2]
BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # building changes the arguments
print(build_meta.build_sdist(folder), build_meta.build_wheel(folder))
"""
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path[:] = [Hidden()] + [each for each in sys.meta_path if "editable" not in str(each).lower()]
import wirekit
assert {wheel!r} in wirekit.__file__, wirekit.__file__
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with wheel and sdist, and the wheel unpacked in ``wheel``."""
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if tracked.returncode:
        pytest.skip("not a checkout of git")
    places = ("src/", "schemas/", "proto/", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")
    for name in tracked.stdout.decode().split("\0"):
        if name.startswith(places) and (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=source, capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "wheel")
    return folder


def test_the_wheel_has_the_files_of_the_repository(built: Path) -> None:
    wheel = built / "wheel"
    for place, package in (("src/wirekit", "wirekit"), ("schemas", "wirekit/schemas"), ("proto", "wirekit/proto")):
        for path in (ROOT / place).rglob("*"):
            if (
                path.suffix in (".py", ".md", ".lua", ".properties", ".proto", ".pyi", ".sql", ".typed")
                or path.name == "py.typed"
            ):
                inside = wheel / package / path.relative_to(ROOT / place)
                assert inside.exists() or path.name == "regenerate.py", inside
    assert (wheel / "wirekit" / "py.typed").exists()
    assert not list(wheel.rglob("tests"))


def test_the_version_stands_in_one_place(built: Path) -> None:
    (metadata,) = (built / "wheel").glob("*.dist-info/METADATA")
    assert f"\nVersion: {wirekit.__version__}\n" in metadata.read_text(encoding="utf-8")
    assert "Requires-Dist: numba" in metadata.read_text(encoding="utf-8")


def test_a_wheel_can_be_built_of_the_sdist(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "schemas/kafka/NOTES.md", "proto/PulsarApi.proto"} <= names
    assert {"src/wirekit/py.typed", "src/wirekit/exports/dissector.lua", "src/wirekit/tables/queries/lag.sql"} <= names


@pytest.mark.parametrize("extra", BROUGHT)
def test_an_extra_alone_is_enough(extra: str, built: Path) -> None:
    hidden = [name for name in OPTIONAL if name not in BROUGHT[extra]]
    program = HIDE.format(hidden=hidden, wheel=str(built / "wheel")) + USED[extra]
    environment = {**os.environ, "PYTHONPATH": str(built / "wheel")}
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=built,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
