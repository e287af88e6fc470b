"""Tests of the tests: cosmic-ray changes the code in one place, and the tests of the area have to notice.

    python tests/mutants/run.py PYTHON AREA COUNT SEED TEST...

It runs under an interpreter that has cosmic-ray and coverage; PYTHON runs the tests. AREA is a file or directory below
``src/wirekit``; of all changes, COUNT are drawn. A copy of the last commit in ``build/mutants/AREA`` is changed, not
the tree. Coverage tells which tests run the changed statement: these run first, then others that run the file (any, if
it has only constants), until ``SECONDS`` are over. Changes that no test notices are printed as differences, and kept
in ``build/mutants/AREA/survivors.diff``.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

import coverage
from cosmic_ray.commands import init
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkItem

HERE = Path("build/mutants")
SECONDS = 30.0
"""How long the tests of a file may take, as measured, beside those of the changed statement."""
TIMEOUT = 10.0
"""How many times as long a test may take with a change as it did without; 20 seconds are always granted."""
SKIPPED_OPERATORS = ("core/RemoveDecorator", "core/ReplaceBinaryOperator_BitOr_")
"""Beginnings of names: decorators here are those of dataclasses and caches, and most bars stand in annotations."""


def copy_of_the_tree(area: str) -> Path:
    """The last commit, with a package of links in front of the one that is installed."""
    tree = HERE.absolute() / area.replace("/", ".") / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    package = tree / "package" / "wirekit"
    package.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    for path in (*(tree / "src" / "wirekit").iterdir(), tree / "schemas", tree / "proto"):
        (package / path.name).symlink_to(path)
    kernels = HERE.absolute() / "kernels"  # named by what they are compiled from, so all areas share them
    kernels.mkdir(exist_ok=True)
    (tree / "build").mkdir()
    (tree / "build" / "kernels").symlink_to(kernels)
    return tree


def sample(database: WorkDB, count: int, seed: str) -> list[WorkItem]:
    """Some of all changes."""
    items = sorted(database.work_items, key=lambda item: str(item.mutations))
    apt = [item for item in items if not item.mutations[0].operator_name.startswith(SKIPPED_OPERATORS)]
    print(f"{len(items)} changes, {len(apt)} of operators that are looked at", flush=True)
    return Random(seed).sample(apt, min(count, len(apt)))


@dataclass(frozen=True)
class Coverage:
    """What ``line_coverage.py`` wrote.

    Attributes:
        seconds: how long each test takes.
        lines: of each file, the tests that run each line.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]

    def tests_of(self, mutation: MutationSpec) -> list[str]:
        """The tests for a change, quick ones first: those of its statement, then others of its file."""
        lines = self.lines.get(str(mutation.module_path.resolve()), {})
        first, last = statement_at(mutation.module_path.read_text(), mutation.start_pos[0])
        of_lines = {test for line in range(first, last + 1) for test in lines.get(str(line), ())}
        of_file = {test for tests in lines.values() for test in tests} - {""} or set(self.seconds)
        near = sorted((self.seconds.get(test, 0.0), test) for test in of_lines - {""})
        far = sorted((self.seconds.get(test, 0.0), test) for test in of_file - of_lines - {""})
        chosen, spent = [test for _, test in near], 0.0
        for seconds, test in far:
            spent += seconds
            if spent > SECONDS:
                break
            chosen.append(test)
        return chosen

    def seconds_of(self, test: str) -> float:
        """How long a test takes."""
        return self.seconds.get(test, 0.0)


def statement_at(source: str, line: int) -> tuple[int, int]:
    """The lines of the innermost statement around one; of a statement with others inside, those up to the line.

    Of the parameters of a function, it is all its lines: the first ones run when the module is imported.

    >>> statement_at("if a:\n    b = (\n        1\n    )", 3)
    (2, 4)
    >>> statement_at("if (\n    a\n):\n    b", 2)
    (1, 2)
    >>> statement_at("def f(a=1):\n    return a", 1)
    (1, 2)
    """
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    around = [node for node in nodes if node.lineno <= line <= (node.end_lineno or line)]
    if not around:
        return line, line
    inner = max(around, key=lambda node: node.lineno)
    if isinstance(inner, ast.FunctionDef):
        return inner.lineno, inner.end_lineno or line
    return inner.lineno, line if hasattr(inner, "body") else inner.end_lineno or line


def main() -> int:
    python, area, count, seed, *tests = sys.argv[1:]
    python = str(Path(python).absolute())
    tree = copy_of_the_tree(area)
    measured = tree.parent / "coverage.json"
    with use_db(tree.parent / "session.sqlite", WorkDB.Mode.create) as database:
        os.chdir(tree)
        os.environ["PYTHONPATH"] = f"package:{Path(coverage.__file__).parents[1]}"
        warm = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]  # compiles kernels
        measure = [python, "tests/mutants/line_coverage.py", str(measured), f"src/wirekit/{area}", *tests]
        if any(subprocess.run(command, check=False).returncode for command in (warm, measure)):
            print("the tests fail without any change", file=sys.stderr)
            return 2
        os.environ["PYTHONPATH"] = "package"
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # that of the sources as they are is written, and stays
        init(find_modules([Path("src/wirekit") / area]), database, {})
        items = sample(database, int(count), seed)
    measured_coverage = Coverage(**json.loads(measured.read_text()))
    survived = []
    for number, item in enumerate(items):
        (mutation,) = item.mutations
        chosen = measured_coverage.tests_of(mutation)
        longest = 20 + TIMEOUT * max(map(measured_coverage.seconds_of, chosen), default=0)
        command = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--timeout={longest:.0f}", *chosen]
        result = mutate_and_test(
            item.mutations, shlex.join(command), 60 + TIMEOUT * sum(map(measured_coverage.seconds_of, chosen))
        )
        lives = not chosen or result.test_outcome is TestOutcome.SURVIVED
        where = f"{mutation.module_path}:{mutation.start_pos[0]} {mutation.operator_name.partition('/')[2]}"
        print(
            f"{number + 1} of {len(items)} {'lives' if lives else 'noticed'}: {where}, {len(chosen)} tests", flush=True
        )
        if lives:
            survived.append(result.diff or "")
            print(survived[-1], flush=True)
            (tree.parent / "survivors.diff").write_text("\n".join(survived))
    print(f"{len(items)} changes: {len(items) - len(survived)} noticed, {len(survived)} not")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
