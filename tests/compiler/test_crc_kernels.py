"""The checksums that compiled kernels call, against zlib and crc32c, in every variant that this processor can run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import crc32c as crc32c_library
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import binding, ir
from numba import types

from wirekit.compiler.kernels import crc
from wirekit.compiler.kernels.arrays import address
from wirekit.errors import Misuse


def of_array(checksum: Any) -> Any:
    """A kernel that computes the checksum of a range of an array."""

    @numba.njit(nogil=True)
    def kernel(buffer: Any, start: int, end: int) -> Any:
        return checksum(address(buffer), start, end)

    return kernel


class Kernel(NamedTuple):
    """A checksum in one variant, and what it must be equal to."""

    compiled: Any
    library: Callable[[Any], int]
    polynomial: int

    def of(self, data: bytes, start: int, end: int) -> int:
        return int(self.compiled(np.frombuffer(data, np.uint8), start, end))


KERNELS = {
    f"{name}-{algorithm}": Kernel(of_array(getattr(crc.VARIANTS[name], f"{algorithm}_at")), library, polynomial)
    for name in crc.AVAILABLE
    for algorithm, library, polynomial in (
        ("crc32", zlib.crc32, crc.IEEE),
        ("crc32c", crc32c_library.crc32c, crc.CASTAGNOLI),
    )
}


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return KERNELS[request.param]


def test_the_values_of_the_catalogue() -> None:
    data = np.frombuffer(b"123456789", np.uint8)
    assert (of_array(crc.crc32_at)(data, 0, 9), of_array(crc.crc32c_at)(data, 0, 9)) == (0xCBF43926, 0xE3069283)


@given(
    length=st.integers(0, 5000),
    start=st.integers(0, 70),
    content=st.one_of(st.sampled_from([b"\x00", b"\xff"]), st.binary(min_size=1, max_size=200)),
    seed=st.integers(0, 2**32),
)
def test_any_range_is_as_the_libraries_say(length: int, start: int, content: bytes, seed: int) -> None:
    filled = (content * (length // len(content) + 1))[:length]
    noise = random.Random(seed)
    for body in (filled, noise.randbytes(length)):
        data = noise.randbytes(start) + body + noise.randbytes(70)
        for each in KERNELS.values():
            assert each.of(data, start, start + length) == each.library(body)


def test_every_length_at_every_alignment(kernel: Kernel) -> None:
    data = random.Random(1).randbytes(1200)
    view = memoryview(data)
    for length in range(600):
        for start in {0, length % 64, 63}:
            assert kernel.of(data, start, start + length) == kernel.library(view[start : start + length]), length


@pytest.mark.parametrize("length", [1 << 16, (1 << 20) + 1, (3 << 20) - 1])
def test_megabytes(kernel: Kernel, length: int) -> None:
    data = random.Random(length).randbytes(length + 20)
    assert kernel.of(data, 5, 5 + length) == kernel.library(memoryview(data)[5 : 5 + length])


def test_two_parts_add_up_to_the_whole_wherever_it_is_split(kernel: Kernel) -> None:
    data = random.Random(2).randbytes(330)
    feedback = int(f"{kernel.polynomial:033b}"[::-1], 2) >> 1
    for length in (1, 15, 16, 17, 64, 80, 129, 330):
        whole = kernel.of(data, 0, length)
        # The first part's checksum, multiplied by x**8 once for each byte of the second.
        for split in range(length + 1):
            first = kernel.of(data, 0, split)
            for _ in range(8 * (length - split)):
                first = (first >> 1) ^ (feedback if first & 1 else 0)
            assert first ^ kernel.of(data, split, length) == whole


def test_an_empty_range_gives_0(kernel: Kernel) -> None:
    for data, at in ((b"", 0), (b"a" * 200, 0), (b"a" * 200, 200)):
        assert kernel.of(data, at, at) == 0


def test_other_kernels_get_numbers_of_32_bits() -> None:
    crc32_at, crc32c_at = crc.crc32_at, crc.crc32c_at

    @numba.njit(nogil=True)
    def both(buffer: Any, start: Any, end: Any) -> Any:
        return crc32_at(address(buffer), start, end), crc32c_at(address(buffer), start, end)

    data = random.Random(4).randbytes(140)
    expected = zlib.crc32(data[2:]), crc32c_library.crc32c(data[2:])
    assert both(np.frombuffer(data, np.uint8), 2, 140) == expected
    assert {overload.signature.return_type for overload in both.overloads.values()} == {types.UniTuple(types.uint32, 2)}


def test_an_array_with_gaps_has_no_address() -> None:
    with pytest.raises(numba.TypingError):
        of_array(crc.crc32_at)(np.zeros(8, np.uint8)[::2], 0, 4)


@pytest.mark.parametrize(
    ("distance", "factors"), [(64, (0x1_5444_2BD4, 0x1_C6E4_1596)), (16, (0x1_7519_97D0, 0x0_CCAA_009E))]
)
def test_the_constants_that_intel_published_come_out(distance: int, factors: tuple[int, int]) -> None:
    assert crc._factors(distance, crc.IEEE) == factors


@pytest.mark.parametrize(
    ("features", "available"),
    [
        ("", ["table"]),
        ("+sse2,-pclmul,+crc32,+ssse3", ["table"]),
        ("+pclmul,+crc32,+ssse3,+vpclmulqdq,-avx512f,-avx512bw", ["clmul", "table"]),
        ("+pclmul,+crc32,+ssse3,+vpclmulqdq,+avx512f,+avx512bw", ["clmul512", "clmul", "table"]),
        ("+neon,+crc", ["arm", "table"]),
    ],
)
def test_the_features_say_which_variants_there_are(features: str, available: list[str]) -> None:
    assert crc._available(features) == available


def test_the_environment_selects_the_checksum_code() -> None:
    assert crc._chosen("auto", ["clmul", "table"]) == crc._chosen("hardware", ["clmul", "table"]) == "clmul"
    assert crc._chosen("table", ["clmul", "table"]) == crc._chosen("auto", ["table"]) == "table"
    with pytest.raises(Misuse, match="no instructions for checksums"):
        crc._chosen("hardware", ["table"])
    with pytest.raises(Misuse, match="WIREKIT_CRC is 'soft'; set it to auto, hardware or table"):
        crc._chosen("soft", ["clmul", "table"])


@pytest.mark.parametrize(
    ("castagnoli", "kind", "instruction"),
    [(False, "uint64", "crc32x"), (False, "uint8", "crc32b"), (True, "uint64", "crc32cx"), (True, "uint8", "crc32cb")],
)
def test_arm_gets_its_instructions(castagnoli: bool, kind: str, instruction: str) -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = ir.Module()
    module.triple = "aarch64-unknown-linux-gnu"
    value = getattr(types, kind)
    words = ir.IntType(32), ir.IntType(value.bitwidth)
    function = ir.Function(module, ir.FunctionType(words[0], words), "step")
    builder = ir.IRBuilder(function.append_basic_block())
    signature, lower = crc._stepped._defn(None, types.uint32, value, types.literal(castagnoli))
    builder.ret(lower(None, builder, signature, [*function.args, None]))
    try:
        target = binding.Target.from_triple(module.triple)
    except RuntimeError:
        pytest.skip("this LLVM is built for one processor")
    machine = target.create_target_machine(features="+crc")
    assembly = machine.emit_assembly(binding.parse_assembly(str(module)))
    assert f"\t{instruction}\tw0, w0, {'x1' if kind == 'uint64' else 'w1'}" in assembly


def run(script: str, *arguments: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    inherited = {name: value for name, value in os.environ.items() if name != crc.VARIABLE}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=inherited | environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=200,
    ).stdout.strip()


def test_wirekit_stays_free_of_numba() -> None:
    script = "import sys, wirekit, wirekit.compiler.kernels; print('numba' in sys.modules)"
    assert run(script) == "False"


# A page between two that no one may touch, in an array over all three: a byte read beside the range kills the process.
GUARDED = """
import ctypes, mmap, random, sys, zlib
import crc32c, numba, numpy
from wirekit.compiler.kernels import crc
from wirekit.compiler.kernels.arrays import address

def of_array(checksum):
    return numba.njit(lambda buffer, start, end: checksum(address(buffer), start, end))

page = mmap.PAGESIZE
pages = mmap.mmap(-1, 3 * page)
pages[page : 2 * page] = random.Random(5).randbytes(page)
raw = (ctypes.c_uint8 * (3 * page)).from_buffer(pages)
whole = numpy.frombuffer(pages, numpy.uint8)
protect = ctypes.CDLL(None, use_errno=True).mprotect
protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for number in (0, 2):
    assert protect(ctypes.addressof(raw) + number * page, page, 0) == 0, ctypes.get_errno()
for name in crc.AVAILABLE:
    variant = crc.VARIANTS[name]
    for checksum, library in ((variant.crc32_at, zlib.crc32), (variant.crc32c_at, crc32c.crc32c)):
        kernel = of_array(checksum)
        for length in [*range(600), page - 1, page]:
            for start in (page, 2 * page - length):
                assert kernel(whole, start, start + length) == library(pages[start : start + length]), (name, length)
print(crc.CHOICE)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="protects memory as POSIX systems do")
def test_no_byte_beside_the_range_is_read() -> None:
    assert run(GUARDED, NUMBA_BOUNDSCHECK="1") == crc.AVAILABLE[0]


# What the columns engine does: writes a module that carries the fingerprint, and lets numba cache what stands in it.
CACHED = """
import importlib, pathlib, sys, zlib
import numpy
from wirekit.compiler.kernels import crc

folder = pathlib.Path(sys.argv[1])
text = '''# {fingerprint}
from numba import njit
from wirekit.compiler.kernels.arrays import address
from wirekit.compiler.kernels.crc import crc32_at

@njit(cache=True)
def checksum(buffer):
    return crc32_at(address(buffer), 0, buffer.size)
'''
name = f"generated_{crc.FINGERPRINT}"
(folder / f"{name}.py").write_text(text.replace("{fingerprint}", crc.FINGERPRINT))
sys.path.insert(0, str(folder))
kernel = importlib.import_module(name).checksum
assert kernel(numpy.frombuffer(bytes(1000), numpy.uint8)) == zlib.crc32(bytes(1000))
print(crc.CHOICE, "from the cache" if sum(kernel.stats.cache_hits.values()) else "compiled")
"""


def test_cached_callers_keep_to_the_instructions_they_were_compiled_for(tmp_path: Path) -> None:
    def outcome(**environment: str) -> str:
        return run(CACHED, str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path / "cache"), **environment)

    best = crc.AVAILABLE[0]
    assert outcome() == f"{best} compiled"
    assert outcome() == f"{best} from the cache"
    if best == "table":
        return
    assert outcome(WIREKIT_CRC="table") == "table compiled"
    assert outcome(WIREKIT_CRC="table") == "table from the cache"
    assert outcome() == f"{best} from the cache"
    # The same choice, for what numba takes for another processor.
    assert outcome(NUMBA_CPU_NAME="generic") == "table compiled"
