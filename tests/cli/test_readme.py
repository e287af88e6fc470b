"""Every session in the README is real: its commands run, and print what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SESSIONS = re.findall(r"^```\n\$ (wirekit [^\n]+)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


@pytest.mark.parametrize(("command", "shown"), [each for each in SESSIONS if each[1]], ids=lambda text: text[:40])
def test_session(command: str, shown: str) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(
        ["bash", "-c", f"{{ {command}; }} 2>&1"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    printed = [line.rstrip() for line in run.stdout.rstrip("\n").splitlines()]
    assert printed == [line.rstrip() for line in shown.rstrip("\n").splitlines()]


def test_there_are_sessions() -> None:
    assert len([each for each in SESSIONS if each[1]]) >= 5
