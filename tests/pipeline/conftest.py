"""A folder of captures with all that can be wrong with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from tests.pipeline.helpers import keep_packets


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
