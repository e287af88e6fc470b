"""The steps that all engines share: lock the lake, plan bundles, hash captures, sum up, commit."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import wirekit
from wirekit.errors import Misuse
from wirekit.pipeline import delta
from wirekit.pipeline.bundles import BUNDLE_BYTES, plan_bundles
from wirekit.pipeline.carried import IDLE_US, Carried, Continuation
from wirekit.pipeline.commits import open_captures
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.ids import run_id
from wirekit.pipeline.inputs import Identification, Job
from wirekit.pipeline.output import Output
from wirekit.pipeline.rows import Rows
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.tables.columns import INPUTS, RUNS


class Step(NamedTuple):
    """The progress of a run.

    Attributes:
        processed, total: bytes of the inputs of all bundles.
        stage: the current work, such as ``reading``.
        bundle, bundles: the number of the bundle, from 1, and the number of bundles.
    """

    processed: int
    total: int
    stage: str
    bundle: int
    bundles: int


Progress = Callable[[Step], None]
"""Receives the progress of a run, from any thread."""

Reached = Callable[[str, int], None]
"""Receives a stage of a bundle, and the number of its bytes that are done."""

READING, COMMITTING = "reading", "committing"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    Attributes:
        summary: the summaries of the captures that it read, in the order of the arguments, after those of files that it
            still could not open.
        manifest: the content of ``manifest.json``, which covers the whole lake.
        changed: captures that changed while they were read, or were deleted.
        committed: files that were not read, because the lake already has them.
        notes: messages about captures that are read again or continue.
        gone: those of ``changed`` that no longer exist.
    """

    summary: Summary
    manifest: dict[str, Any]
    changed: tuple[str, ...]
    committed: int = 0
    notes: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()


class Options(TypedDict, total=False):
    """Arguments of ``publish`` that drivers pass on: how the lake gets its rows."""

    replace: bool
    form: str | None
    rotating: bool
    idle_us: int


Work = Callable[[Job, str, Reached], list[Manifest]]
"""Writes the tables of a bundle.

Its arguments are the bundle's job, the folder of attempts, and a receiver of progress. It returns the manifests of
tasks.
"""


def publish(
    job: Job,
    output: str | os.PathLike[str],
    engine: str,
    work: Work,
    progress: Progress | None = None,
    *,
    bundle: int = BUNDLE_BYTES,
    replace: bool = False,
    form: str | None = None,
    rotating: bool = False,
    idle_us: int = IDLE_US,
    cut: bool = True,
) -> Result:
    """Adds missing inputs to a lake, bundle by bundle; if the work raises, committed bundles stay.

    Args:
        job: the inputs and options.
        output: the lake: a directory, or the URI of a prefix.
        engine: the name of the driver, for the commits.
        work: writes the tables of one bundle.
        progress: called with the progress of the run.
        bundle: approximate size in bytes of the captures that are committed together.
        replace: whether the run replaces the content of the lake once it is complete.
        form: ``parquet``, or ``delta`` for Delta tables; None for the form of the lake, ``parquet`` if it is new.
        rotating: whether captures may get more files later: then the state of their connections is stored, and a later
            run continues them. The open rows form a bundle of their own, which a later bundle replaces.
        idle_us: a connection that was silent for longer at the end of a bundle is over; at least ``IDLE_US``.
        cut: whether the files of a capture may be in several bundles.

    Raises:
        Misuse: ``output`` has files that wirekit did not write, or was written with other options.
    """
    if idle_us < IDLE_US:
        raise Misuse(f"the idle time must be at least {IDLE_US // 1_000_000} s, not {idle_us / 1_000_000:g} s")
    with Output(output) as claimed:
        _choose_form(claimed, form, replace=replace)
        if claimed.is_of_another_version and not replace:
            raise Misuse(
                f"an earlier version of wirekit wrote {claimed.folder.name}; pass another directory, or --replace"
            )
        plan = plan_bundles(job, claimed.commits, bundle, replace=replace, rotating=rotating, cut=cut)
        summary, changed, processed = Summary(), dict[str, bool](), 0
        for name, reason in plan.refused.items():
            summary.file(name).unreadable = reason
        for number, each in enumerate(plan.bundles, 1):

            def reached(stage: str, size: int, number: int = number, before: int = processed) -> None:
                if progress is not None:
                    step = min(before + size, plan.size)
                    progress(Step(step, plan.size, stage, number, len(plan.bundles)))

            states = claimed.states()
            continuations = {
                number: Continuation(
                    piece.capture, states.get(piece.capture, ()) if piece.continues else (), piece.goes_on, idle_us
                )
                for number, piece in each.parts.items()
            }
            part = dataclasses.replace(job, inputs=each.inputs, continuations=continuations)
            with Identification(part) as identification:
                reached(READING, 0)
                manifests = work(part, claimed.attempts, reached)
                counted = Summary({part.capture_name(file.number): FileSummary() for file in part.inputs})
                for manifest in manifests:
                    counted.merge(manifest.summary)
                now_changed = {
                    name: is_gone
                    for name, is_gone in identification.changed().items()
                    if is_gone or name not in counted.unopened  # whose status the system may refuse as well
                }
                facts = _facts(job, engine, counted, identification.rows(counted.unopened), [*now_changed])
                continues = sorted(piece.capture for piece in each.parts.values() if piece.continues)
                if continues:
                    facts["continues"] = continues
            reached(COMMITTING, each.size)
            task = 1 + max((manifest.task for manifest in manifests), default=0)
            manifests.append(_described(claimed.attempts, task, part, facts))
            claimed.commit(manifests, facts, each.replaces)
            summary.merge(counted)
            changed |= now_changed
            processed += each.size
        for captures in _without_open_rows(claimed.commits, summary.files):
            counted = _add_open_rows(claimed, job, engine, captures)
            if captures[0] in summary.files:
                summary.merge(counted)
        gone = frozenset(name for name, is_gone in changed.items() if is_gone)
        return Result(summary, claimed.finish(), tuple(changed), plan.committed, tuple(plan.notes), gone)


def _without_open_rows(commits: Mapping[int, Mapping[str, Any]], read: Container[str]) -> list[list[str]]:
    """Captures that continue and whose open connections have no rows: those that this run read, then the others."""
    having = {name for commit in commits.values() for name in commit.get("open", ())}
    lacking = [name for name in open_captures(commits) if name not in having]
    groups = [name for name in lacking if name in read], [name for name in lacking if name not in read]
    return [group for group in groups if group]


def _add_open_rows(output: Output, job: Job, engine: str, captures: Sequence[str]) -> Summary:
    """Commits the open rows at the end of captures, as if the captures ended there."""
    summary, states = Summary(), output.states()
    with Sink(output.attempts, 0, "open") as sink:
        for name in captures:
            carried = Carried(Continuation(name, states[name]), job.choice)
            for table, batch in flow_batches((), job, summary, carried=carried):
                sink.write(table, batch)
        manifest = sink.finish(summary)
    output.commit([manifest], {**_facts(job, engine, summary), "open": list(captures)})
    return summary


def _facts(
    job: Job, engine: str, summary: Summary, inputs: Sequence[Any] = (), changed: Sequence[str] = ()
) -> dict[str, Any]:
    """The facts of a commit about its run and its inputs."""
    return {
        "wirekit": wirekit.__version__,
        "engine": engine,
        "configuration": job.configuration(),
        "inputs": list(inputs),
        "changed_while_read": list(changed),
        "summary": summary.to_json(),
    }


def _choose_form(output: Output, form: str | None, *, replace: bool) -> None:
    """Refuses a format that the lake cannot have."""
    name = output.folder.name
    if output.is_delta and form == "parquet":
        raise Misuse(f"{name} has Delta tables; pass another directory")
    if form == "delta" and not output.is_delta:
        if output.commits and not replace:
            raise Misuse(f"{name} has tables that are not Delta tables; pass another directory, or --replace")
        output.is_delta = True
    if output.is_delta:
        delta.check(output.folder)


def _described(attempts: str, task: int, job: Job, facts: Mapping[str, Any]) -> Manifest:
    """Writes the facts of the commit about its run and its inputs as tables."""
    runs, inputs = Rows(RUNS.schema), Rows(INPUTS.schema)
    configuration = facts["configuration"]
    run = run_id(configuration, facts["inputs"])
    runs.add(
        {
            "run_id": run,
            "wirekit": facts["wirekit"],
            "engine": facts["engine"],
            "finished": time.time_ns() // 1000,
            "protocol": configuration["protocol"],
            "ports": [{"port": port, "protocol": name} for port, name in sorted(job.ports.items())],
            "raw": configuration["raw"],
            "frame_values": configuration["values"],
        }
    )
    for each, entry in zip(job.inputs, facts["inputs"], strict=True):
        counts = facts["summary"].get(entry["capture"], {}) if each.first is None else {}
        inputs.add(
            {
                "run_id": run,
                "file": each.name,
                "capture": entry["capture"],
                "kind": each.kind,
                "size": each.size,
                "modified": each.mtime_ns // 1000,
                "sha256": entry["sha256"],
                "changed": each.name in facts["changed_while_read"],
                "segments": counts.get("segments"),
                "first_time": counts.get("first_us"),
                "last_time": counts.get("last_us"),
                "skipped": [
                    {"reason": reason, "packets": count} for reason, count in counts.get("skipped", {}).items()
                ],
                "damaged": counts.get("damaged"),
                "unreadable": counts.get("unreadable"),
            }
        )
    with Sink(attempts, task, "run") as sink:
        for table, rows in ((RUNS, runs), (INPUTS, inputs)):
            batch = rows.flush()
            if batch is not None:
                sink.write(table.name, batch)
        return sink.finish(Summary())
