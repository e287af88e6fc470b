"""Coverage-guided search before a run: atheris adds inputs that reach new code of a Python target to the queue."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from wirekit.errors import Misuse
from wirekit.fuzz.corpus import QUEUE, Corpus
from wirekit.fuzz.process import ENDED, Child
from wirekit.fuzz.targets import START_SECONDS, Bounds

LONGEST_COMPLAINT = 300
EXECUTED = re.compile(rb"stat::number_of_executed_units:\s+(\d+)")


def explore(corpus: Corpus, module: str, function: str, seconds: float, bounds: Bounds) -> int:
    """Searches for inputs for some time; returns the number of inputs added to the queue.

    Args:
        corpus: the search begins with the inputs in its queue.
        module, function: the target.
        seconds: the time for the search.
        bounds: time and memory of one input.

    Raises:
        Misuse: atheris is not installed, or the target cannot be imported.
    """
    queue = corpus.path / QUEUE
    queue.mkdir(parents=True, exist_ok=True)
    before = _inputs(queue)
    worker = str(Path(__file__).with_name("coverage_worker.py"))
    numbers = [str(max(1, round(number))) for number in (seconds, bounds.memory / (1 << 20), bounds.seconds)]
    child = Child([sys.executable, worker, module, function, *numbers, str(queue.absolute())], subprocess.DEVNULL)
    try:
        state = child.wait(seconds + START_SECONDS, 1 << 62)
    finally:
        child.kill()
    complaint = child.complaint.decode(errors="replace")
    if "No module named 'atheris'" in complaint:
        raise Misuse("--explore needs atheris: pip install 'wirekit[fuzz-coverage]'")
    if state == ENDED and EXECUTED.search(child.complaint) is None and _inputs(queue) == before and child.status:
        raise Misuse(f"python:{module}:{function}: {complaint.strip()[-LONGEST_COMPLAINT:]}")
    return len(_inputs(queue) - before)


def _inputs(queue: Path) -> frozenset[str]:
    return frozenset(file.name for file in queue.iterdir())
