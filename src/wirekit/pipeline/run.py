"""What both drivers do around their work: claim the output, hash the captures meanwhile, add up, publish."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wirekit
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
    """What a run did.

    Attributes:
        summary: the captures in the order in which they were named.
        manifest: what ``manifest.json`` says.
        changed: captures that changed while they were read.
    """

    summary: Summary
    manifest: dict[str, Any]
    changed: tuple[str, ...]


def publish(job: Job, output: str | os.PathLike[str], engine: str, work: Callable[[Path], list[Manifest]]) -> Result:
    """Runs the work and makes what it wrote the tables of ``output``; when it raises, ``output`` stays as it was.

    Args:
        job: what to do.
        output: the directory of tables.
        engine: name of the driver, for the manifest.
        work: writes into the directory of attempts that it is given; returns the manifest of each task.

    Raises:
        Misuse: ``output`` holds something that is not wirekit's.
    """
    with Output(output) as claimed, Identification(job.inputs) as identification:
        manifests = work(claimed.attempts)
        summary = Summary({job.capture_of(each.number).name: FileSummary() for each in job.inputs})
        for manifest in manifests:
            summary.merge(manifest.summary)
        changed = identification.changed()
        about = {
            "wirekit": wirekit.__version__,
            "engine": engine,
            "configuration": job.configuration(),
            "inputs": identification.rows(),
            "changed_while_read": changed,
            "summary": summary.to_json(),
        }
        task = 1 + max((each.task for each in manifests), default=0)
        manifests.append(_described(claimed.attempts, task, job, about))
        return Result(summary, claimed.commit(manifests, about), tuple(changed))


def _described(attempts: Path, task: int, job: Job, about: Mapping[str, Any]) -> Manifest:
    """Writes what the manifest says of the run and its inputs as tables."""
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
