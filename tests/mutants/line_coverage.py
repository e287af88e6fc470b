"""Runs tests under coverage and writes which of them run which lines.

Usage: ``python line_coverage.py OUTPUT SOURCE TEST...``.

It runs under the interpreter that has the tests' packages, with coverage on its path. The output is JSON: ``seconds``
of each test, and of each file which tests run each line; a line that is run while modules are imported has the test "".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest


class Contexts:
    """Records in coverage which test runs, and how long it took."""

    def __init__(self, measuring: coverage.Coverage) -> None:
        self.measuring = measuring
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measuring.switch_context(item.nodeid)
        yield
        self.measuring.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


def main() -> int:
    output, source, *tests = sys.argv[1:]
    area = str(Path(source).resolve())
    measuring = coverage.Coverage(data_file=None, include=[area, f"{area}/**"], config_file=False)
    contexts = Contexts(measuring)
    measuring.start()
    status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--timeout", "0", *tests], [contexts])
    measuring.stop()
    data = measuring.get_data()
    lines = {str(Path(name).resolve()): data.contexts_by_lineno(name) for name in data.measured_files()}
    Path(output).write_text(json.dumps({"seconds": contexts.seconds, "lines": lines}))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
