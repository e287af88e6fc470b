"""An environment with the oldest packages that ``pyproject.toml`` accepts, for ``make test-lowest``.

The packages of development are the newest that go with them, without those of gRPC, which need a newer protobuf.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEWER = ("grpcio-status", "grpcio-tools")
_BOUND = re.compile(r"([\w.-]+)(?:\[\w+\])?[>=]=([\w.]+)")


def oldest() -> dict[str, str]:
    """{package: the oldest version} of what wirekit and its extras need, without those for development and docs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [
        *project["dependencies"],
        *(each for name in extras if name not in ("dev", "docs") for each in extras[name]),
    ]
    return {bound[1]: bound[2] for each in needed if (bound := _BOUND.match(each))}


def main(place: Path) -> None:
    """Makes the environment."""
    venv.create(place, with_pip=True, clear=True)
    constraints = place / "oldest.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in oldest().items()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tools = [each for each in project["optional-dependencies"]["dev"] if not each.startswith(NEWER)]
    pip = [place / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", constraints]
    subprocess.run([*pip, "-e", f"{ROOT}[columns,spark,fast,fuzz,sql,delta]", *tools], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
