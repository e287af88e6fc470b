"""Hypothesis profiles, where the fixtures are, one Spark session for all tests, and which of them one process runs."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.nodeid import NodeId
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import engines
from tests.engines import decode_by_all, encode_by_all, forget_compared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling
    from xdist.workermanage import WorkerController

FIXTURES = Path(__file__).parent.parent / "fixtures"

settings.register_profile(
    "quick", max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "exhaustive", max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
if settings().derandomize:
    # Hypothesis also draws the constants in the modules that are loaded: examples would depend on the tests before.
    CONSTANTS = providers.Constants()
    providers._get_local_constants = lambda: CONSTANTS


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The directory of captures and vectors."""
    return FIXTURES


@pytest.fixture(autouse=True)
def interruptible() -> None:
    """Commands that a test starts inherit it if SIGINT is ignored: in the background, and after a test of ``main``."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Kernels are compiled for the tests, once while the code stays as it is; what the user has is left alone."""
    folder = request.config.rootpath / "build" / "kernels"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WIREKIT_CACHE_DIR", str(folder))
        yield folder


FIRST = (
    *("spark", "tests/strategies/test_values.py", "tests/strategies/test_mutations.py"),
    *("tests/compression/test_memory.py", "tests/pipeline/test_stored_parts.py", "tests/road/test_law_of_clocks.py"),
    *("tests/road/test_deferred.py", "tests/road/test_rounds.py", "tests/road/test_beyond_windows.py"),
    *(
        "tests/strategies/test_layouts_of_ones_own.py",
        "tests/road/test_cut_captures.py",
        "tests/compression/test_totals.py",
    ),
    *("tests/pipeline/test_bundles.py", "tests/pipeline/test_engines.py", "tests/pipeline/test_processes.py"),
    *("tests/pipeline/test_remote_lake.py", "tests/cli/test_terminal.py", "tests/spark/test_session.py"),
)
"""What the processes begin with. Only the first needs kernels early; the others find them compiled. From the fourth on
they take long for the number of their tests, by which files are ordered: each could otherwise keep one process at work
alone at the end.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup``: one process runs all tests that share the session of Spark, which takes seconds to
    start.

    xdist 3.8 appends the group to ``_nodeid``, which pytest 9.2 does not read any more.
    """
    if getattr(config.option, "loadgroup", False):
        for item in items:
            grouped = item.get_closest_marker("xdist_group") is not None
            if grouped or "spark" in getattr(item, "fixturenames", ()):
                item._id = NodeId.parse(f"{item.nodeid}@spark")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """With ``--dist loadgroup``: each file to one process, as most kernels are of one file, but for Spark's tests."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.endswith("@spark") else super()._split_scope(nodeid)

        def _assign_work_unit(self, node: WorkerController) -> None:
            if not any(self.assigned_work.values()):
                for scope in reversed(FIRST):
                    if scope in self.workqueue:
                        self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What collecting tests makes stays until the end, so garbage is not looked for there; later, not so often.

    Most objects that are left are those of an example of hypothesis: 5,000 of them are still in the processor's cache,
    where looking at an object takes half the time that it does with 50,000.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(5_000, 20, 50)
        gc.enable()


def pytest_unconfigure() -> None:
    """DuckDB's binding prints the objects that are still there when Python ends."""
    gc.unfreeze()


BEHAVIOUR = {"jmq4", "kafka", "net", "pulsar", "wire", "conversation", "compression", "registry"}


@cache
def _places(modules: int) -> list[tuple[ModuleType, str, Callable[..., Any]]]:
    """Where decoding and encoding are called by name, while so many modules are imported."""
    by_all: dict[str, Callable[..., Any]] = {"decode": decode_by_all, "encode": encode_by_all}
    return [
        (module, attribute, by_all[attribute])
        for name, module in list(sys.modules.items())
        if name.startswith(("wirekit.decoding", "wirekit.encoding", "wirekit.conversation")) or name == "wirekit"
        for attribute in by_all
        if hasattr(module, attribute)
    ]


@pytest.fixture(scope="module", autouse=True)
def _compared_anew() -> None:
    forget_compared()


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> None:
    """What earlier files left in caches stays until the end: tests that collect garbage do not go through it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def every_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the tests of behaviour, what is decoded or encoded is so on every engine, and each is shown to agree."""
    if request.path.parent.name not in BEHAVIOUR:
        yield
        return
    for place in _places(len(sys.modules)):
        monkeypatch.setattr(*place)
    before = set(sys.modules)
    yield
    for name in sys.modules.keys() - before:  # their imports are those of this test
        for attribute, function in (("decode", engines.decode), ("encode", engines.encode)):
            if getattr(sys.modules[name], attribute, None) in (decode_by_all, encode_by_all):
                setattr(sys.modules[name], attribute, function)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as ``wirekit.spark.session`` makes it, on two threads with retries; starting one takes seconds."""
    from wirekit.spark.session import session

    # The JVM's first compiler only, one thread that collects garbage, and no verification of Spark's classes: the jobs
    # of tests are too short to earn back what the others cost.
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.python.daemon.module": "tests.spark.daemon",
        "spark.executorEnv.PYTHONPATH": str(FIXTURES.parent),
    }
    started = session("local[2,4]", "wirekit tests", conf)
    yield started
    started.stop()
