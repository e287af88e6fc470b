"""A pytest plugin for tests of your own codec: cases of a layout as parameters, and profiles.

It is loaded by ``pytest_plugins = ["wirekit.pytest_plugin"]`` in a ``conftest.py``, or by ``-p wirekit.pytest_plugin``.
No other module of wirekit is imported before a test requests cases.

- ``@pytest.mark.wirekit_cases(key, count=..., seed=..., context=..., kinds=...)`` gives a test the argument ``case``, a
  ``wirekit.fuzz.Case``, for each of a number of sound and damaged inputs.
- ``@pytest.mark.exhaustive`` marks tests that run only in the exhaustive profile.
- ``--wirekit-profile quick|exhaustive``, or the variable ``WIREKIT_PROFILE``, sets the profile of ``wirekit.testing``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from wirekit.fuzz import Case

PROFILE = "WIREKIT_PROFILE"
PROFILES = ("quick", "exhaustive")
CASES = 50
"""The number of cases of a test whose marker gives no count."""
MARKERS = (
    "wirekit_cases(key, count=50, seed=0, context=None, kinds=None): run the test once for"
    " each of some valid and damaged inputs of a layout, passed as `case`",
    "exhaustive: run the test only in wirekit's exhaustive profile",
)

_before = pytest.StashKey[str | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the profile."""
    group = parser.getgroup("wirekit")
    group.addoption(
        "--wirekit-profile", choices=PROFILES, help="the number of inputs for tests of codecs (docs/fuzzing.md)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the markers, and sets the profile of ``wirekit.testing``."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.stash[_before] = os.environ.get(PROFILE)
    if config.option.wirekit_profile is not None:
        os.environ[PROFILE] = config.option.wirekit_profile


def pytest_unconfigure(config: pytest.Config) -> None:
    """Restores the environment."""
    before = config.stash.get(_before, None)
    if before is None:
        os.environ.pop(PROFILE, None)
    else:
        os.environ[PROFILE] = before


def pytest_report_header() -> str:
    """The line of the report with the profile."""
    return f"wirekit: profile {_profile()}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Passes a marked test its cases."""
    marker = metafunc.definition.get_closest_marker("wirekit_cases")
    if marker is None:
        return
    if len(marker.args) != 1 or not set(marker.kwargs) <= {"count", "seed", "context", "kinds"}:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: write wirekit_cases(key, count=, seed=, context=, kinds=)"
        )
    from wirekit.fuzz.numbered_cases import NumberedCases

    options = dict(marker.kwargs)
    count, seed = options.pop("count", CASES), options.pop("seed", 0)
    numbered_cases = NumberedCases(marker.args[0], seed, **options)
    cases: list[Case] = [numbered_cases[index] for index in range(count)]
    metafunc.parametrize("case", cases, ids=[f"{index}-{case.kind}" for index, case in enumerate(cases)])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips exhaustive tests in other profiles."""
    if _profile() == "exhaustive":
        return
    skip = pytest.mark.skip(reason="runs with --wirekit-profile exhaustive")
    for item in items:
        if item.get_closest_marker("exhaustive") is not None:
            item.add_marker(skip)


def _profile() -> str:
    profile = os.environ.get(PROFILE, PROFILES[0])
    if profile not in PROFILES:
        raise pytest.UsageError(f"{PROFILE} must be {' or '.join(PROFILES)}, not {profile!r}")
    return profile
