"""Checksum algorithms by name."""

import doctest
import json
import subprocess
import sys
import zlib
from pathlib import Path

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirekit import checksums
from wirekit.checksums import Checksum, checksum
from wirekit.errors import Misuse

ROOT = Path(__file__).resolve().parents[2]
CHECK = b"123456789"


# The "check" values of the catalogue of parametrised CRC algorithms.
@pytest.mark.parametrize(("name", "value"), [("crc32", 0xCBF43926), ("crc32c", 0xE3069283)])
def test_known_values(name: str, value: int) -> None:
    algorithm = checksum(name)
    assert algorithm.function(CHECK) == algorithm(CHECK) == value
    assert algorithm(bytearray(CHECK)) == algorithm(memoryview(b"." + CHECK)[1:]) == value
    assert algorithm(b"") == 0
    assert (algorithm.name, algorithm.bits) == (name, 32)
    assert algorithm.description


@given(st.binary(max_size=600), st.integers(0, 8))
def test_crc32_is_the_same_whichever_library_computes_it(data: bytes, start: int) -> None:
    isal = pytest.importorskip("isal.isal_zlib")
    expected = zlib.crc32(data[start:])
    assert isal.crc32(data[start:]) == checksum("crc32")(data[start:]) == expected
    assert checksum("crc32")(memoryview(data)[start:]) == checksum("crc32")(bytearray(data[start:])) == expected


@given(st.binary(max_size=600), st.integers(0, 8))
def test_crc32c_in_plain_python_is_that_of_the_package(data: bytes, start: int) -> None:
    expected = crc32c.crc32c(data[start:])
    assert checksums.crc32c_plain(data[start:]) == checksum("crc32c")(data[start:]) == expected
    assert checksums.crc32c_plain(memoryview(data)[start:]) == expected
    assert checksums.crc32c_plain(bytearray(data[start:])) == expected


def test_the_first_bytes_of_a_process_do_not_load_the_package_for_crc32c_and_many_do() -> None:
    code = """
import sys
from wirekit.checksums import PLAIN, checksum

function, piece = checksum("crc32c"), bytes(range(256))
few = [function(piece) for _ in range(PLAIN // len(piece))]
assert "crc32c" not in sys.modules
many = [function(piece) for _ in range(2)]
assert "crc32c" in sys.modules
assert {*few, *many} == {sys.modules["crc32c"].crc32c(piece)}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_crc32c_of_rfc_3720() -> None:
    assert checksum("crc32c")(bytes(32)) == 0x8A9136AA
    assert checksum("crc32c")(b"\xff" * 32) == 0x62A8AB43
    assert checksum("crc32c")(bytes(range(32))) == 0x46DD794E


def test_crc32c_of_a_pulsar_client() -> None:
    vectors = json.loads((ROOT / "fixtures/pulsar/golden_frames.json").read_text())
    (vector,) = (entry for entry in vectors if entry["kind"] == "crc32c")
    assert checksum("crc32c")(bytes.fromhex(vector["hex"])) == vector["expect"]["crc32c"]


def test_the_internet_checksum_of_rfc_1071() -> None:
    words = bytes.fromhex("0001f203f4f5f6f7")
    assert checksum("internet")(words) == 0xFFFF - 0xDDF2
    assert checksum("internet")(words + b"\x01") == 0xFFFF - 0xDEF2
    assert checksum("internet")(bytes(4)) == 0xFFFF
    assert checksum("internet")(b"\xff\xff") == 0


def test_an_unknown_name_is_the_callers_fault_and_the_known_ones_are_listed() -> None:
    with pytest.raises(Misuse, match=r"no checksum 'md7'; \d+ are known, among them md5"):
        checksum("md7")


def test_an_algorithm_of_another_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "_CHECKSUMS", dict(checksums._CHECKSUMS))
    checksums.register(Checksum("sum8", 8, lambda data: sum(data) & 0xFF, "sum of all bytes"))
    assert checksum("sum8")(b"\x01\x02") == 3
    known = checksums.names()
    assert known[:3] == ("crc32", "crc32c", "internet")
    assert known.index("sum8") == len(checksums._CHECKSUMS) - 1, "what is registered stands in front of the catalogue"
    with pytest.raises(Misuse, match="'sum8' already exists"):
        checksums.register(checksum("sum8"))


def test_examples_in_the_documentation_run() -> None:
    result = doctest.testmod(checksums)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize(
    ("cpuinfo", "slows_down"),
    [
        ("vendor_id\t: GenuineIntel\nflags\t\t: fpu avx2 avx512f", True),
        ("vendor_id\t: GenuineIntel\nflags\t\t: fpu avx2", False),
        ("vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2 avx512f", False),
    ],
)
def test_isal_is_left_alone_where_a_call_of_it_slows_down_the_process(
    tmp_path: Path, cpuinfo: str, slows_down: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert checksums._slows_down(str(tmp_path / "cpuinfo")) is slows_down
    assert not checksums._slows_down(str(tmp_path / "none"))
