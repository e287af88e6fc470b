"""Tests of the tests: cosmic-ray changes the code in one place, and the tests of the area have to notice.

    python tests/mutants.py PYTHON AREA COUNT SEED TEST...

It runs under an interpreter that has cosmic-ray; PYTHON runs the tests. AREA is a file or directory below
``src/wirekit``; of all changes, COUNT are drawn. A copy of the last commit in ``build/mutants`` is changed, not the
tree. What the tests did not notice is printed as a difference, and kept in ``build/mutants/survivors.diff``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

from cosmic_ray.commands import execute, init
from cosmic_ray.config import ConfigDict
from cosmic_ray.modules import find_modules
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

HERE = Path("build/mutants")
SECONDS = 300.0
SKIPPED_OPERATORS = ("core/RemoveDecorator", "core/ReplaceBinaryOperator_BitOr_")
"""Beginnings of names: decorators here are those of dataclasses and caches, and most bars stand in annotations."""


def copy_of_the_tree() -> Path:
    """The last commit, with a package of links in front of the one that is installed."""
    tree = HERE.absolute() / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    package = tree / "package" / "wirekit"
    package.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    for path in (*(tree / "src" / "wirekit").iterdir(), tree / "schemas", tree / "proto"):
        (package / path.name).symlink_to(path)
    return tree


def sample(database: WorkDB, count: int, seed: str) -> None:
    """Marks all changes but some as skipped."""
    items = sorted(database.work_items, key=lambda item: str(item.mutations))
    apt = [item for item in items if not item.mutations[0].operator_name.startswith(SKIPPED_OPERATORS)]
    chosen = {item.job_id for item in Random(seed).sample(apt, min(count, len(apt)))}
    for item in items:
        if item.job_id not in chosen:
            database.set_result(item.job_id, WorkResult(WorkerOutcome.SKIPPED))
    print(f"{len(items)} changes, {len(apt)} of operators that are looked at, {len(chosen)} drawn", flush=True)


def main() -> int:
    python, area, count, seed, *tests = sys.argv[1:]
    python = str(Path(python).absolute())
    tree = copy_of_the_tree()
    environment = "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=package"
    command = f"env {environment} {python} -m pytest -x -q -p no:cacheprovider {' '.join(tests)}"
    config = ConfigDict({"timeout": SECONDS, "test-command": command, "distributor": {"name": "local"}})
    with use_db(HERE / "session.sqlite", WorkDB.Mode.create) as database:
        os.chdir(tree)
        if subprocess.run(command.split(), check=False).returncode:
            print("the tests fail without any change", file=sys.stderr)
            return 2
        init(find_modules([Path("src/wirekit") / area]), database, {})
        sample(database, int(count), seed)
        execute(database, config)
        done = [result for _, result in database.results if result.worker_outcome is not WorkerOutcome.SKIPPED]
    survived = [result.diff or "" for result in done if result.test_outcome is TestOutcome.SURVIVED]
    killed = sum(result.test_outcome is TestOutcome.KILLED for result in done)
    text = "\n".join(survived)
    (tree.parent / "survivors.diff").write_text(text)
    print(f"{text}\n{len(done)} changes: {killed} noticed, {len(survived)} not")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
