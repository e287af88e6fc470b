"""A run: passes cases to targets until the number or the time is used up; confirms, shrinks and stores new findings."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from wirekit.fuzz.cases import Case
from wirekit.fuzz.corpus import Corpus
from wirekit.fuzz.findings import Finding, judge
from wirekit.fuzz.minimising import minimised
from wirekit.fuzz.numbered_cases import NumberedCases
from wirekit.fuzz.plays import Plays
from wirekit.fuzz.targets import Target

MOST_FINDINGS = 100
"""The number of different findings after which a run ends."""
SLOWEST_MINIMISING = 10.0
"""The maximum seconds for shrinking a case."""
QUEUE_FRAMES = 32
STATE_SECONDS = 5.0
UNREPEATABLE = ("gone",)
"""Kinds of findings after which the target is gone, so that the case cannot be repeated."""


@dataclass(frozen=True)
class Options:
    """The options of a run.

    Attributes:
        count: cases at most, or None.
        seconds: time at most, or None.
        jobs: threads, each with a target of its own.
        compare: whether values are compared with wirekit's.
        minimise: whether cases are shrunk.
    """

    count: int | None = None
    seconds: float | None = None
    jobs: int = 1
    compare: bool = False
    minimise: bool = True


@dataclass
class Summary:
    """The result of a run.

    Attributes:
        cases: number of cases run.
        first: the number of the first case.
        seconds: duration of the run.
        kinds: cases by kind of damage.
        outcomes: cases by outcome.
        findings: the findings, without those that earlier runs stored.
        known: number of cases by signature of the findings that earlier runs stored.
    """

    cases: int = 0
    first: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)


class Fuzzer:
    """Runs the cases of a layout against a target.

    Args:
        cases: the cases.
        target: creates a target; called once for each job.
        options: how long and how.
        corpus: where findings are stored, or None.
        resume: whether to continue after the last run with this corpus and seed without its findings, and to store
            where this one ends.
    """

    def __init__(
        self,
        cases: NumberedCases | Plays,
        target: Callable[[], Target],
        options: Options,
        *,
        corpus: Corpus | None = None,
        resume: bool = False,
    ) -> None:
        self._cases = cases
        self._target = target
        self._options = options
        self._corpus = corpus
        self._resume = resume and corpus is not None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._running: set[int] = set()
        self._findings: dict[str, Finding] = {}
        self._known: set[str] = set()
        self._next = 0
        self._written = 0.0
        self.summary = Summary()

    def run(self, progress: Callable[[Summary], None] = lambda summary: None) -> Summary:
        """Runs until it is done.

        Args:
            progress: called a few times a second, in the thread of the caller.

        Raises:
            Misuse: the target cannot be used at all.
        """
        self._begin()
        started = time.monotonic()
        pool = ThreadPoolExecutor(self._options.jobs)
        jobs = [pool.submit(self._work) for _ in range(self._options.jobs)]
        try:
            while wait(jobs, 0.1, FIRST_EXCEPTION).not_done and not any(job.done() and job.exception() for job in jobs):
                self.summary.seconds = time.monotonic() - started
                if self._options.seconds is not None and self.summary.seconds >= self._options.seconds:
                    self._stop.set()
                progress(self.summary)
        finally:
            if wait(jobs, 0).not_done:
                self._stop.set()
            pool.shutdown()
            self.summary.seconds = time.monotonic() - started
            self._save()
        for job in jobs:
            job.result()  # raises what went wrong in it
        return self.summary

    def _begin(self) -> None:
        if self._corpus is None or not self._resume:
            return
        self._known = self._corpus.signatures()
        state = self._corpus.state()
        if (state.get("key"), state.get("seed")) == (self._cases.key, self._cases.seed):
            self._next = state["next"] if isinstance(state.get("next"), int) else 0
        self._corpus.queue_frames(self._cases.sound(QUEUE_FRAMES))
        self.summary.first = self._next

    def _work(self) -> None:
        """Runs case after case."""
        target = self._target()
        try:
            while (index := self._take()) is not None:
                self._run_case(target, self._cases[index])
                self._end_case(index)
        finally:
            target.close()

    def _take(self) -> int | None:
        with self._lock:
            count = self._options.count
            spent = count is not None and self._next - self.summary.first >= count
            if spent or self._stop.is_set() or len(self._findings) >= MOST_FINDINGS:
                return None
            index, self._next = self._next, self._next + 1
            self._running.add(index)
            return index

    def _end_case(self, index: int) -> None:
        with self._lock:
            self._running.discard(index)
            if self._resume and time.monotonic() - self._written > STATE_SECONDS:
                self._save()

    def _save(self) -> None:
        if self._resume and self._corpus is not None:
            self._written = time.monotonic()
            following = min(self._running, default=self._next)
            self._corpus.set_state({"key": self._cases.key, "seed": self._cases.seed, "next": following})

    def _run_case(self, target: Target, case: Case) -> None:
        outcome = target.run(case)
        finding = judge(case, outcome, compare=self._options.compare)
        with self._lock:
            self.summary.cases += 1
            self.summary.kinds[case.kind] += 1
            self.summary.outcomes[finding.kind if finding is not None else outcome.kind] += 1
            if finding is None:
                return
            if finding.signature in self._known:
                self.summary.known[finding.signature] += 1
                return
            if finding.signature in self._findings:
                self._findings[finding.signature].count += 1
                return
            self._findings[finding.signature] = finding
        self._confirm(target, finding)
        if self._corpus is not None:
            self._corpus.keep(finding)
        with self._lock:
            self.summary.findings.append(finding)
        if finding.kind in UNREPEATABLE:
            self._stop.set()

    def _confirm(self, target: Target, finding: Finding) -> None:
        """Tries the case again on a fresh target, free of effects of earlier cases, and then shrinks it."""
        if finding.kind in UNREPEATABLE:
            finding.reproduced = False
            return

        smallest = finding

        def shows(data: bytes) -> bool:
            nonlocal smallest
            case = finding.case.with_data(data)
            again = judge(case, target.run(case), compare=self._options.compare)
            if again is None or not finding.same(again):
                return False
            smallest = again
            return True

        target.restart()
        finding.reproduced = shows(finding.case.data)
        if not finding.reproduced or not self._options.minimise:
            return
        end = time.monotonic() + SLOWEST_MINIMISING
        minimised(finding.case.data, lambda data: time.monotonic() < end and not self._stop.is_set() and shows(data))
        if smallest.case.data != finding.case.data:
            finding.case, finding.says, finding.log = smallest.case.shrunk(), smallest.says, smallest.log


def replayed(case: Case, target: Target, *, compare: bool) -> tuple[str, Finding | None]:
    """Runs one case: (outcome, finding)."""
    try:
        outcome = target.run(case)
    finally:
        target.close()
    return outcome.kind, judge(case, outcome, compare=compare)


def default_folder(key: str) -> Path:
    """The directory of findings if the caller names no corpus."""
    return Path("wirekit-fuzz") / key
