"""What is in the repository is in the wheel: packages stand in three places, and are listed by hand."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = {"src": "", "schemas": "wirekit.schemas", "proto": "wirekit.proto"}

NOT_LOCKED = ("spark-jdk", "fuzz-coverage")
"""Extras that not every machine can have, or needs: a Java, and a package without wheels for each Python."""


def test_every_package_is_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    packages = set()
    for place, prefix in PLACES.items():
        for path in (ROOT / place).rglob("__init__.py"):
            inside = path.parent.relative_to(ROOT / place).parts
            packages.add(".".join([*prefix.split("."), *inside] if prefix else inside))
    assert packages == set(listed)


def test_the_lock_has_all_that_the_extras_ask_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [*project["dependencies"]]
    for name, extra in project["optional-dependencies"].items():
        requirements += extra if name not in NOT_LOCKED else []
    names = {re.split(r"[\[<>=;]", requirement)[0].strip() for requirement in requirements}
    locked = {line.split("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line}
    assert names <= locked
