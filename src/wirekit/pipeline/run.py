"""The steps that both engines share: claim the lake, plan bundles, hash captures, sum up, commit."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import wirekit
from wirekit.errors import Misuse
from wirekit.pipeline import delta
from wirekit.pipeline.bundles import BUNDLE_BYTES, plan_bundles
from wirekit.pipeline.ids import run_id
from wirekit.pipeline.inputs import Identification, Job
from wirekit.pipeline.output import Output
from wirekit.pipeline.rows import Rows
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.tables.columns import INPUTS, RUNS

Progress = Callable[[int, int], None]
"""Is told (done, of how many), in whatever unit the driver can measure."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    Attributes:
        summary: the captures that it read, in the order in which they were named.
        manifest: what ``manifest.json`` says: of all that the tables have.
        changed: captures that changed while they were read.
        committed: files that were not read, as the tables have them.
        notes: what readers should know of captures that are not simply new.
    """

    summary: Summary
    manifest: dict[str, Any]
    changed: tuple[str, ...]
    committed: int = 0
    notes: tuple[str, ...] = ()


Work = Callable[[Job, str, int, int], list[Manifest]]
"""Writes the tables of a bundle.

It gets the bundle's job, the folder of attempts, and how many bytes of how many in all bundles are done; returns the
manifest of each task.
"""


def publish(
    job: Job,
    output: str | os.PathLike[str],
    engine: str,
    work: Work,
    *,
    bundle: int = BUNDLE_BYTES,
    replace: bool = False,
    form: str | None = None,
) -> Result:
    """Adds what a lake does not have yet to it, bundle by bundle; when the work raises, earlier bundles stay.

    Args:
        job: what to do.
        output: the lake: a directory, or the URI of a prefix.
        engine: name of the driver, for the commits.
        work: makes the tables of one bundle.
        bundle: bytes of captures that are committed together, about; a capture is never in two bundles.
        replace: whether what the lake has is replaced when all is complete.
        form: ``parquet``, or ``delta`` for Delta tables; None for the form that the lake has, ``parquet`` if it is new.

    Raises:
        Misuse: ``output`` holds something that is not wirekit's, or was made with other options.
    """
    with Output(output) as claimed:
        _choose_form(claimed, form, replace=replace)
        if claimed.is_of_another_version and not replace:
            raise Misuse(
                f"an earlier version of wirekit wrote {claimed.folder.name}; pass another directory, or --replace"
            )
        plan = plan_bundles(job, claimed.commits, bundle, replace=replace)
        summary, changed, done = Summary(), list[str](), 0
        for each in plan.bundles:
            part = dataclasses.replace(job, inputs=each.inputs)
            with Identification(part.inputs) as identification:
                manifests = work(part, claimed.attempts, done, plan.size)
                counted = Summary({part.capture_of(file.number).name: FileSummary() for file in part.inputs})
                for manifest in manifests:
                    counted.merge(manifest.summary)
                now_changed = identification.changed()
                about = {
                    "wirekit": wirekit.__version__,
                    "engine": engine,
                    "configuration": job.configuration(),
                    "inputs": identification.rows(),
                    "changed_while_read": now_changed,
                    "summary": counted.to_json(),
                }
            task = 1 + max((manifest.task for manifest in manifests), default=0)
            manifests.append(_described(claimed.attempts, task, part, about))
            claimed.commit(manifests, about, each.replaces)
            summary.merge(counted)
            changed += now_changed
            done += each.size
        return Result(summary, claimed.finish(), tuple(changed), plan.committed, tuple(plan.notes))


def _choose_form(output: Output, form: str | None, *, replace: bool) -> None:
    """Refuses a form that the lake cannot have."""
    name = output.folder.name
    if output.is_delta and form == "parquet":
        raise Misuse(f"{name} has Delta tables; pass another directory")
    if form == "delta" and not output.is_delta:
        if output.commits and not replace:
            raise Misuse(f"{name} has tables that are not Delta tables; pass another directory, or --replace")
        output.is_delta = True
    if output.is_delta:
        delta.check(output.folder)


def _described(attempts: str, task: int, job: Job, about: Mapping[str, Any]) -> Manifest:
    """Writes what the commit says of its making and its inputs as tables."""
    runs, inputs = Rows(RUNS.schema), Rows(INPUTS.schema)
    configuration = about["configuration"]
    run = run_id(configuration, about["inputs"])
    runs.add(
        {
            "run_id": run,
            "wirekit": about["wirekit"],
            "engine": about["engine"],
            "finished": time.time_ns() // 1000,
            "protocol": configuration["protocol"],
            "ports": [{"port": port, "protocol": name} for port, name in sorted(job.ports.items())],
            "raw": configuration["raw"],
            "frame_values": configuration["values"],
        }
    )
    for each, said in zip(job.inputs, about["inputs"], strict=True):
        counts = about["summary"].get(each.name, {})
        inputs.add(
            {
                "run_id": run,
                "file": each.name,
                "capture": said["capture"],
                "kind": each.kind,
                "size": each.size,
                "modified": each.mtime_ns // 1000,
                "sha256": said["sha256"],
                "changed": each.name in about["changed_while_read"],
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
