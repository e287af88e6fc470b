"""A folder of captures with all that can be wrong with them, and an object store."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from tests.pipeline.helpers import keep_packets
from tests.pipeline.object_store import ObjectStore, object_store


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real captures as they are, with packets lost, cut in the middle of a record, and a file that is none."""
    folder = tmp_path_factory.mktemp("captures")
    whole = FIXTURES / "pcap"
    for path in sorted(whole.glob("*.pcap*")):
        (folder / path.name).symlink_to(path)
    lossy = keep_packets(whole / "pulsar-consume.pcap", folder / "lossy.pcap", [n for n in range(193) if n % 9 != 5])
    (folder / "sub").mkdir()
    (folder / "sub" / "cut.pcap").write_bytes((whole / "pulsar-nobatch.pcap").read_bytes()[:-20])
    (folder / "sub" / "packed.pcap.gz").write_bytes(gzip.compress(lossy.read_bytes()))
    (folder / "sub" / "notes.cap").write_bytes(b"not a capture\n" * 10)
    (folder / "sub" / "readme.txt").write_bytes(b"not read")
    return folder


@pytest.fixture(scope="session")
def object_store_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("moto") / "log") as store:
        yield store


@pytest.fixture
def store(object_store_server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """An object store that the environment names."""
    for name, value in object_store_server.environment.items():
        monkeypatch.setenv(name, value)
    return object_store_server
