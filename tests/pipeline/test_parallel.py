"""How much a run in parallel commits together: enough that no core waits for work."""

from __future__ import annotations

import pytest

from wirekit.pipeline.bundles import plan_bundles
from wirekit.pipeline.inputs import Input, Job, captures
from wirekit.pipeline.parallel import WAVES, balanced, bundle_bytes

CORES = 8


@pytest.mark.parametrize("size", [1000, 64 << 20, 1 << 30, 20 << 30])
def test_a_bundle_has_tasks_for_all_cores(size: int) -> None:
    inputs = tuple(Input(number, f"{number}.pcap", f"/{number}.pcap", size, 0) for number in range(100))
    bundles = plan_bundles(Job(inputs), {}, bundle_bytes(captures(inputs), CORES)).bundles
    tasks = [len(balanced(captures(bundle.inputs), CORES * WAVES)) for bundle in bundles]
    assert set(tasks[:-1]) <= {CORES * WAVES}
    assert sum(len(bundle.inputs) for bundle in bundles) == len(inputs)
