"""Builds wheel and sdist, installs each extra into an environment of its own, and uses it: `make test-release`.

The sdist is what the first environment gets, and mypy reads the types of the installed package from outside.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from tests.release.parts import BROUGHT, COMPILED, OPTIONAL, USED

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "release"
TYPED = """import wirekit
number: int = wirekit.decode(b"", "kafka.message").consumed
text: str = wirekit.decode(b"", "kafka.message").consumed
"""


def run(*command: str | Path) -> str:
    """What a command prints; its failure ends the program."""
    completed = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=FOLDER)
    if completed.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{completed.stdout}{completed.stderr}")
    return completed.stdout


def main() -> None:
    """Says each environment that works."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    build = "from setuptools import build_meta; import os, sys; _, root, to = sys.argv; os.chdir(root); "
    build += "print(build_meta.build_sdist(to), build_meta.build_wheel(to))"
    names = run(sys.executable, "-c", build, ROOT, FOLDER).split()[-2:]
    sdist, wheel = (FOLDER / name for name in names)
    for extra in BROUGHT:
        place = FOLDER / f"env-{extra or 'core'}"
        venv.create(place, with_pip=True, clear=True)
        python = place / "bin" / "python"
        source = sdist if not extra else wheel
        run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            f"{source}[{extra}]" if extra else source,
        )
        installed = run(python, "-m", "pip", "list", "--format=freeze")
        packages = {line.partition("==")[0].lower() for line in installed.splitlines()}
        beside = packages & set(OPTIONAL) - set(BROUGHT[extra])
        if beside:
            sys.exit(f"{extra or 'core'} brings {', '.join(sorted(beside))} as well; say so in tests/release/parts.py")
        run(python, "-c", USED[extra])
        if extra == "columns":
            run(python, "-c", COMPILED)
        print(f"{extra or 'core'}: installed from {source.name}, {len(packages)} packages, works", flush=True)
    (FOLDER / "outside.py").write_text(TYPED)
    python = FOLDER / "env-core" / "bin" / "python"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--python-executable", str(python), "outside.py"],
        capture_output=True, text=True, check=False, cwd=FOLDER,
    )  # fmt: skip
    if "outside.py:3: error: Incompatible types" not in checked.stdout or "outside.py:2" in checked.stdout:
        sys.exit(f"types from outside:\n{checked.stdout}{checked.stderr}")
    print("py.typed: mypy reads the types of the installed package")


if __name__ == "__main__":
    main()
