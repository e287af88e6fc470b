"""Are the tables the same after a run of many bundles was killed at random moments?

Twenty moments of runs over 24 captures, a bundle each: on one process, killed as a whole; on Spark, half of the kills
take the driver with its JVM, the others a Python worker. A run that was killed is started again over the same lake. In
the end all rows must be those of a run that nobody killed, and nothing else may be left behind. A difference is an
error.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import capture_samples
from wirekit.pipeline.commits import lake_files
from wirekit.tables.columns import OUTPUTS

CAPTURES = 24
SIZE = 1 << 20
KILLS = 20
SEED = 15
ENGINES = ("serial", "spark")
MOST_COMMITS = 3
"""After so many commits at most a run is killed, and then at a moment of the next bundle."""
LONGEST = 1.5
"""Seconds after that at most: about what a bundle takes."""
RUN = """
import sys
from wirekit.pipeline.inputs import Job, find_inputs
engine, captures, lake = sys.argv[1:]
job = Job(find_inputs([captures]), road="objects")
if engine == "serial":
    from wirekit.pipeline.serial import run
    run(job, lake, bundle=1)
else:
    from wirekit.spark.pipeline import run
    from wirekit.spark.session import session
    run(job, lake, session("local[2,4]", "killed", {"spark.driver.memory": "1g"}), bundle=1)
"""


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, how many) per engine."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        captures = Path(folder) / "captures"
        captures.mkdir()
        for number in range(CAPTURES):
            capture_samples.small_packets(captures / f"{number:02}.pcap", SIZE)
        whole = Path(folder) / "whole"
        _started("serial", captures, whole).wait()
        expected = content(whole)
        for engine in ENGINES:
            counts = _killed(engine, captures, Path(folder) / engine, expected)
            rows.append((f"{engine}: kills", ", ".join(f"{count} {outcome}" for outcome, count in counts.items())))
    return str(__doc__).partition("\n")[0], rows


def _killed(engine: str, captures: Path, lake: Path, expected: dict[str, pa.Table]) -> Counter[str]:
    """Kills runs until there were enough kills, and looks at each lake that is complete."""
    chance = random.Random(SEED)
    counts: Counter[str] = Counter()
    kills = 0
    while True:
        process = _started(engine, captures, lake)
        while kills < KILLS and _wait(process, lake, _commits(lake) + chance.randrange(MOST_COMMITS + 1)):
            time.sleep(chance.uniform(0, LONGEST))
            committed = _commits(lake)
            if process.poll() is not None:
                break
            if engine == "spark" and kills % 2:
                if not _kill_a_worker(process.pid):
                    continue
                counts["of workers"] += 1
            else:
                os.killpg(process.pid, signal.SIGKILL)
                counts["of all of a run"] += 1
            kills += 1
            counts[f"with {'some' if committed else 'no'} bundles committed"] += 1
        status = process.wait()
        if status == 0:
            counts["complete lakes"] += 1
            _compare(lake, expected)
            if kills >= KILLS:
                return counts
            shutil.rmtree(lake)
        elif status != -signal.SIGKILL:
            raise AssertionError(f"a run that was not killed ends with {status}")


def _wait(process: subprocess.Popen[bytes], lake: Path, commits: int) -> bool:
    """Waits until a run works on a bundle and the lake has so many commits; False when the run has ended."""
    attempts = lake / ".wirekit" / "attempts"
    while process.poll() is None:
        if _commits(lake) >= commits and attempts.is_dir() and any(attempts.iterdir()):
            return True
        time.sleep(0.02)
    return False


def _compare(lake: Path, expected: dict[str, pa.Table]) -> None:
    written = content(lake)
    for table, rows in expected.items():
        if not written[table].equals(rows):
            raise AssertionError(
                f"{table}: {written[table].num_rows} rows, or others than the {rows.num_rows} expected"
            )
    left = [name for name in os.listdir(lake) if name.startswith(".wirekit")]
    if left:
        raise AssertionError(f"left behind: {left}")


def content(lake: Path) -> dict[str, pa.Table]:
    """The rows of all tables of a lake in an order of their own."""
    tables, files = {}, lake_files(str(lake))
    for name, table in OUTPUTS.items():
        rows = pa.concat_tables([pq.read_table(each, schema=table.schema) for each in files[name]])
        rows = rows.drop_columns([each for each in ("engine", "finished") if each in rows.column_names])
        order = sorted((repr(row), number) for number, row in enumerate(rows.to_pylist()))
        tables[name] = rows.take(pa.array([number for _, number in order], pa.int64())).combine_chunks()
    return tables


def _started(engine: str, captures: Path, lake: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", RUN, engine, str(captures), str(lake)]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _commits(lake: Path) -> int:
    return len(list((lake / "commits").glob("*"))) if (lake / "commits").is_dir() else 0


def _kill_a_worker(driver: int) -> bool:
    """Kills a process that a Python daemon of Spark has forked, if there is one."""
    parents, daemons = {}, set()
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(each.parent.name)] = int(each.read_text().rpartition(")")[2].split()[1])
            if b"pyspark.daemon" in (each.parent / "cmdline").read_bytes():
                daemons.add(int(each.parent.name))
        except OSError:
            continue

    def below(pid: int) -> bool:
        while pid > 1 and pid != driver:
            pid = parents.get(pid, 0)
        return pid == driver

    for pid, parent in parents.items():
        if parent in daemons and below(pid):
            os.kill(pid, signal.SIGKILL)
            return True
    return False
