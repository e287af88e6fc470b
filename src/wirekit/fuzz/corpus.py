"""Cases as files: ``queue`` has inputs in the form that other fuzzers read and write, ``findings`` those of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wirekit.errors import Misuse
from wirekit.fuzz.cases import REPLAYED, Case
from wirekit.fuzz.findings import Finding
from wirekit.fuzz.plays import play_of
from wirekit.values import json_text

QUEUE = "queue"
FINDINGS = "findings"
STATE = "wirekit.json"
OWN = "wirekit-"
"""The beginning of the names of sound frames that are put into the queue."""
MOST_ORIGINALS = 10_000
LARGEST_ORIGINAL = 1 << 20


class Corpus:
    """A directory of cases.

    Args:
        path: the directory; created at the first write.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def originals(self) -> list[bytes]:
        """The inputs of other programs, by name: files of at most 1 MiB in the directory and its queue."""
        inputs: list[bytes] = []
        for folder in (self.path, self.path / QUEUE):
            for file in sorted(folder.iterdir()) if folder.is_dir() else ():
                own = file.name.startswith((OWN, ".")) or file.name == STATE
                if not own and file.is_file() and file.stat().st_size <= LARGEST_ORIGINAL:
                    inputs.append(file.read_bytes())
        return list(dict.fromkeys(inputs))[:MOST_ORIGINALS]

    def queue_frames(self, frames: Iterable[bytes]) -> None:
        """Adds sound frames to the queue."""
        (self.path / QUEUE).mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(frames):
            (self.path / QUEUE / f"{OWN}{number:03}.bin").write_bytes(data)

    def keep(self, finding: Finding) -> None:
        """Writes the bytes and the description of a finding."""
        (self.path / FINDINGS).mkdir(parents=True, exist_ok=True)
        file = self.path / FINDINGS / f"{finding.name}.bin"
        finding.file = str(file)
        file.write_bytes(finding.case.data)
        line = {**finding.to_json(), "original": finding.original.data.hex()}
        file.with_suffix(".json").write_text(json.dumps(line, indent=1) + "\n")

    def signatures(self) -> set[str]:
        """The signatures of the stored findings."""
        signatures = set()
        folder = self.path / FINDINGS
        for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            line = _loaded(file)
            if isinstance(line, dict) and isinstance(line.get("signature"), str):
                signatures.add(line["signature"])
        return signatures

    def state(self) -> dict[str, Any]:
        """The state of the last run: layout, seed, number of the next case; empty without an earlier run."""
        file = self.path / STATE
        line = _loaded(file) if file.is_file() else {}
        return line if isinstance(line, dict) else {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Writes the state, as a whole or not at all."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / f".{STATE}"
        file.write_text(json_text(state) + "\n")
        file.replace(self.path / STATE)


def load(path: str, key: str | None, context: dict[str, Any]) -> Case:
    """Reads a case from its ``.bin`` or ``.json`` file; from other bytes, a case without a name.

    Args:
        key: the layout, if there is no ``.json``.
        context: the context, if there is no ``.json``.

    Raises:
        Misuse: the layout is unknown.
    """
    file = Path(path)
    data = (file.with_suffix(".bin") if file.suffix == ".json" else file).read_bytes()
    beside = file.with_suffix(".json")
    if beside.is_file():
        line = _loaded(beside)
        case = line.get("case") if isinstance(line, dict) else None
        return play_of(case, data) if isinstance(case, dict) and "at" in case else Case.from_json(case, data)
    if key is None:
        raise Misuse(f"{beside} does not exist; name the layout of {path}: wirekit fuzz KEY --replay {path}")
    return Case(key, data, REPLAYED, context=context)


def _loaded(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except (ValueError, RecursionError):
        raise Misuse(f"{file} is not JSON") from None
