"""CRC-32 (IEEE) and CRC-32C (Castagnoli) for numba kernels, by the processor's instructions where it has them.

``crc32_at(address, start, end)`` and ``crc32c_at(address, start, end)`` are nopython functions. They take the bytes
from ``start`` to ``end`` after an address, and return as uint32 the same as ``zlib.crc32`` and ``crc32c.crc32c`` for
these bytes. They read no byte beside the range, and trust their arguments. An empty range gives 0.

Each has several variants; the module selects one when it is imported (``CHOICE``):

- ``clmul512``, ``clmul`` (x86-64): carry-less multiplication in registers of 512 or 128 bits, after Gopal, Ozturk,
  Guilford and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009: four
  registers are folded along the input, then into one, which Barrett's division reduces. Two things differ from the
  paper. The bytes that a multiple of 16 or 64 leaves over come first, not last, after zeros, which change nothing at
  the start of a message. And the reduction divides 64 bits at once, which takes one multiplication less. Inputs of
  CRC-32C that are too short to fold take the instruction ``crc32`` of SSE 4.2. The paper's constants are computed here.
- ``arm`` (ARM64): the instructions ``crc32x`` and ``crc32cx``.
- ``table``: slicing-by-8 after Kounavis and Berry, "Novel Table Lookup-Based Algorithms for High-Performance CRC
  Generation", IEEE Transactions on Computers 57 (11), 2008.

The environment variable ``WIREKIT_CRC`` selects: ``auto`` (the default: the fastest), ``hardware`` (the same, but an
error instead of tables) or ``table``.

Numba's cache on disk must never run the instructions of one machine on another. Each key of its index contains the
processor's name and features, and the choice here depends on the same features. But numba considers neither
``WIREKIT_CRC`` nor this file: it checks only the text of the file of a cached function, although it compiles the
functions called into it. Therefore **a cached function that calls these must have** ``FINGERPRINT`` **in the text of
its file**, preferably in the file's name too, so that two choices do not replace each other.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import models, register_model

from wirekit.compiler.kernels import arrays
from wirekit.compiler.kernels.arrays import address, inlined, inner, intrinsic, loader
from wirekit.crc import reverse
from wirekit.errors import Misuse

VARIABLE: Final = "WIREKIT_CRC"

# The usual notation, the highest power first. Everything computed with them is bit-reflected, as the checksums are.
IEEE: Final = 0x1_04C1_1DB7
CASTAGNOLI: Final = 0x1_1EDC_6F41

_BLOCK: Final = 16
_WIDE_BLOCK: Final = 64
_ONES: Final[Any] = np.uint32(0xFFFF_FFFF)
_LOW_BYTE: Final[Any] = np.uint32(0xFF)
_ZERO: Final[Any] = np.uint64(0)

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _divided(exponent: int, polynomial: int) -> tuple[int, int]:
    """x**exponent divided by the polynomial: quotient and remainder."""
    quotient, remainder = 0, 1 << exponent
    while remainder.bit_length() >= polynomial.bit_length():
        shift = remainder.bit_length() - polynomial.bit_length()
        quotient |= 1 << shift
        remainder ^= polynomial << shift
    return quotient, remainder


def _factor(exponent: int, polynomial: int) -> np.uint64:
    """The remainder of x**exponent, as the factor of a reflected word.

    The product of two reflected words is one bit too low; the shift corrects this.
    """
    return np.uint64(reverse(_divided(exponent, polynomial)[1], 32) << 1)


def _factors(distance: int, polynomial: int) -> tuple[np.uint64, np.uint64]:
    """The factors that move a block of 16 bytes ahead by ``distance`` bytes: for its first and its second word.

    Such a factor has 32 bits, not 64, so the register contains x**32 times the product. The first word represents
    x**64 times its value.
    """
    bits = 8 * distance
    return _factor(bits + 32, polynomial), _factor(bits - 32, polynomial)


def _tables(polynomial: int) -> np.ndarray:
    """Eight rows: the checksum of a byte followed by 0 to 7 more bytes."""
    feedback = reverse(polynomial, 33) >> 1
    row = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        row = np.where(row & 1, (row >> 1) ^ np.uint32(feedback), row >> 1)
    rows = [row]
    for _ in range(7):
        rows.append((rows[-1] >> 8) ^ row[rows[-1] & 0xFF])
    return np.array(rows)


class _Vector(types.Type):
    """A processor register of 64-bit words, as nopython code sees it."""

    def __init__(self, words: int) -> None:
        self.words = words
        super().__init__(name=f"wirekit_vector{words}")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(_I64, kind.words))  # type: ignore[no-untyped-call]


def _called(builder: Any, name: str, result: ir.Type, arguments: list[Any]) -> Any:
    """The result of an instruction, called by its LLVM name."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(builder.module.declare_intrinsic(name, fnty=kind), arguments)


_byte, _word = loader(types.uint8, 8, 1, False), loader(types.uint64, 64, 1, sys.byteorder != "little")


@intrinsic(prefer_literal=True)
def _vector(typing: Any, words: Any, data: Any, position: Any) -> Any:
    """A register of a number of words from memory."""
    kind = _Vector(words.literal_value)

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        register = ir.VectorType(_I64, kind.words)
        place = builder.inttoptr(builder.add(*arguments[1:]), ir.PointerType(register))
        return builder.load(place, align=1, typ=register)

    return kind(words, data, types.intp), lower


@intrinsic
def _last(typing: Any, data: Any, end: Any, count: Any) -> Any:
    """A register of 64 bytes whose last ``count``, up to 63, are those before ``end``; no others are read."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base, limit, size = arguments
        ones = _I64(0xFFFF_FFFF_FFFF_FFFF)
        mask = builder.shl(builder.shl(ones, builder.sub(_I64(63), size)), _I64(1))
        kind = ir.VectorType(_I8, 64)
        place = builder.inttoptr(builder.add(base, builder.sub(limit, _I64(64))), ir.PointerType(_I8))
        values = [place, _I32(1), builder.bitcast(mask, ir.VectorType(ir.IntType(1), 64)), ir.Constant(kind, [0] * 64)]
        read = _called(builder, "llvm.masked.load.v64i8.p0", kind, values)
        return builder.bitcast(read, ir.VectorType(_I64, 8))

    return _Vector(8)(data, types.intp, types.intp), lower


@intrinsic(prefer_literal=True)
def _pairs(typing: Any, words: Any, first: Any, second: Any) -> Any:
    """A register of a number of words: first, second, first, second and so on."""
    kind = _Vector(words.literal_value)

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = ir.Constant(ir.VectorType(_I64, kind.words), ir.Undefined)
        for index in range(kind.words):
            value = builder.insert_element(value, arguments[1 + index % 2], _I32(index))
        return value

    return kind(words, types.uint64, types.uint64), lower


@intrinsic(prefer_literal=True)
def _words(typing: Any, vector: Any, first: Any, words: Any) -> Any:
    """A number of words of a register from the first on; zeros after its end."""
    begin, kind = first.literal_value, _Vector(words.literal_value)

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zeros = ir.Constant(arguments[0].type, [0] * vector.words)
        mask = ir.Constant(ir.VectorType(_I32, kind.words), list(range(begin, begin + kind.words)))
        return builder.shuffle_vector(arguments[0], zeros, mask)

    return kind(vector, first, words), lower


@intrinsic(prefer_literal=True)
def _element(typing: Any, vector: Any, index: Any) -> Any:
    """One word of a register."""
    number = index.literal_value

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.extract_element(arguments[0], _I32(number))

    return types.uint64(vector, index), lower


def _joining(instructions: Callable[..., Any]) -> Any:
    """A function that joins two registers; ``instructions`` emits its code, by a builder of LLVM."""

    @intrinsic
    def joined(typing: Any, one: Any, other: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return instructions(builder, *arguments)

        return one(one, one), lower

    return joined


def _multiplied(builder: Any, one: Any, other: Any, word: int) -> Any:
    """The carry-less products of a word, 0 or 1, of each block."""
    name = "llvm.x86.pclmulqdq" + {2: "", 8: ".512"}[one.type.count]
    return _called(builder, name, one.type, [one, other, _I8(0x11 * word)])


@intrinsic
def _folded(typing: Any, vector: Any, factors: Any, ahead: Any) -> Any:
    """The blocks of ``vector``, moved ahead by the distance of the factors, and added to the blocks there."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, other, there = arguments
        first, second = (_multiplied(builder, one, other, word) for word in (0, 1))
        return builder.xor(builder.xor(first, there), second)

    return vector(vector, vector, vector), lower


def _moved(builder: Any, block: Any, indexes: Any) -> Any:
    """The bytes of a block by their indexes; 0x80 gives a zero."""
    kind = ir.VectorType(_I8, 16)
    values = [builder.bitcast(each, kind) for each in (block, indexes)]
    return builder.bitcast(_called(builder, "llvm.x86.ssse3.pshuf.b.128", kind, values), block.type)


_and, _xor, _shuffled = _joining(ir.IRBuilder.and_), _joining(ir.IRBuilder.xor), _joining(_moved)
_product = _joining(partial(_multiplied, word=0))
"""The carry-less products of the first words of all blocks."""


@intrinsic(prefer_literal=True)
def _stepped(typing: Any, checksum: Any, value: Any, castagnoli: Any) -> Any:
    """The checksum after 8 bytes (a uint64) or one (a uint8), by the processor's instruction."""
    eight = value == types.uint64
    polynomial = "c" if castagnoli.literal_value else ""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if builder.module.triple.startswith(("aarch64", "arm64")):
            name = f"llvm.aarch64.crc32{polynomial}{'x' if eight else 'b'}"
            kinds = _I32, _I64 if eight else _I32
        elif eight:
            name, kinds = "llvm.x86.sse42.crc32.64.64", (_I64, _I64)
        else:
            name, kinds = "llvm.x86.sse42.crc32.32.8", (_I32, _I8)
        values = [builder.zext(argument, kind) for argument, kind in zip(arguments[:2], kinds, strict=True)]
        return builder.trunc(_called(builder, name, kinds[0], values), _I32)

    return types.uint32(types.uint32, value, castagnoli), lower


# The strategies: each makes a function of (address, position, limit) that trusts its arguments.


def _by_table(polynomial: int) -> Any:
    tables: Any = _tables(polynomial)

    @inlined
    def checksum(data: Any, position: int, limit: int) -> Any:
        crc = _ONES
        while limit - position >= 8:
            word = _word(data, position) ^ np.uint64(crc)
            crc = tables[7, word & np.uint64(0xFF)]
            for index in range(1, 8):
                crc ^= tables[7 - index, (word >> np.uint64(8 * index)) & np.uint64(0xFF)]
            position += 8
        while position < limit:
            crc = tables[0, (crc ^ _byte(data, position)) & _LOW_BYTE] ^ (crc >> np.uint32(8))
            position += 1
        return np.uint32(crc ^ _ONES)

    return checksum


def _by_instruction(castagnoli: bool) -> Any:
    @inlined
    def checksum(data: Any, position: int, limit: int) -> Any:
        crc = _ONES
        while limit - position >= 8:
            crc = _stepped(crc, _word(data, position), castagnoli)
            position += 8
        while position < limit:
            crc = _stepped(crc, _byte(data, position), castagnoli)
            position += 1
        return np.uint32(crc ^ _ONES)

    return checksum


def _along(words: int) -> Any:
    """A function that folds a register along the input while whole registers remain."""
    size = 8 * words

    @inlined
    def along(one: Any, data: Any, position: int, limit: int, by_one: Any, by_four: Any) -> Any:
        if limit - position >= 3 * size:
            two = _vector(words, data, position)
            three = _vector(words, data, position + size)
            four = _vector(words, data, position + 2 * size)
            position += 3 * size
            while limit - position >= 4 * size:
                one = _folded(one, by_four, _vector(words, data, position))
                two = _folded(two, by_four, _vector(words, data, position + size))
                three = _folded(three, by_four, _vector(words, data, position + 2 * size))
                four = _folded(four, by_four, _vector(words, data, position + 3 * size))
                position += 4 * size
            one = _folded(_folded(_folded(one, by_one, two), by_one, three), by_one, four)
        while limit - position >= size:
            one = _folded(one, by_one, _vector(words, data, position))
            position += size
        return one, position

    return along


_along_2, _along_8 = _along(2), _along(8)

# The 16 from index n on move the bytes of a block up by 16 - n, or down by n - 16, and fill with zeros.
_SHIFTS: Final = np.array([0x80] * 16 + list(range(16)) + [0x80] * 16, np.uint8)


def _odd_bytes(polynomial: int) -> Any:
    """A function of the bytes before the first multiple of 16, and of the initial ones of the checksum.

    It returns the summand for the first block after these bytes, and the position of this block.
    """
    by_16 = _factors(16, polynomial)

    @inlined
    def odd_bytes(data: Any, position: int, limit: int) -> Any:
        odd = (limit - position) & (_BLOCK - 1)
        shifts = address(_SHIFTS)
        start = _pairs(2, np.uint64(_ONES), _ZERO)
        first = _shuffled(_xor(_vector(2, data, position), start), _vector(2, shifts, odd))
        # Fewer than 4 odd bytes don't take all 32 ones; the others fall to the next block.
        overflow = _shuffled(start, _vector(2, shifts, _BLOCK + odd))
        return _folded(first, _pairs(2, by_16[0], by_16[1]), overflow), position + odd

    return odd_bytes


def _reduced(polynomial: int) -> Any:
    """A function that returns the remainder of a block, times x**32, divided by the polynomial.

    First the block's first word is reduced to the 32 bits after the second, which gives 96 bits. The quotient of the
    upper 64 bits is their product with the quotient of x**96 (its last bit has no effect). Subtracting the quotient
    times the polynomial leaves the remainder in the lower 32 bits.
    """
    by_96 = _factor(96, polynomial)
    quotient_of_96 = np.uint64(reverse(_divided(96, polynomial)[0], 65) & 0xFFFF_FFFF_FFFF_FFFF)
    divisor = np.uint64(reverse(polynomial, 33))

    @inlined
    def reduced(block: Any) -> Any:
        block = _xor(_product(block, _pairs(2, by_96, _ZERO)), _words(block, 1, 2))
        quotient = _product(block, _pairs(2, quotient_of_96, _ZERO))
        return np.uint32(_element(_xor(_product(quotient, _pairs(2, divisor, _ZERO)), block), 1))

    return reduced


def _by_folding(polynomial: int, least: int, short: Any) -> Any:
    """Folds in registers of 128 bits; lengths below ``least`` (16 or more) are left to ``short``."""
    by_16, by_64 = _factors(16, polynomial), _factors(64, polynomial)
    odd_bytes, reduced = _odd_bytes(polynomial), _reduced(polynomial)

    @inlined
    def checksum(data: Any, position: int, limit: int) -> Any:
        if limit - position < least:
            return short(data, position, limit)
        block, position = odd_bytes(data, position, limit)
        block = _xor(block, _vector(2, data, position))
        ahead, far = _pairs(2, by_16[0], by_16[1]), _pairs(2, by_64[0], by_64[1])
        block, position = _along_2(block, data, position + _BLOCK, limit, ahead, far)
        return np.uint32(reduced(block) ^ _ONES)

    return checksum


# Of the 128 bytes from index n on, the 4 after the first 64 - n are ones: the initial ones of n bytes and 64 more.
_INITIAL: Final = np.array([0x00] * 64 + [0xFF] * 4 + [0x00] * 124, np.uint8)
_LAST_BLOCK: Final = np.array([0x00] * 48 + [0xFF] * 16, np.uint8)


def _joined(polynomial: int) -> Any:
    """A function that adds the four blocks of a wide register, each moved ahead to the last one."""
    distances = [factor for count in (3, 2, 1) for factor in _factors(16 * count, polynomial)]
    factors = np.array([*distances, 0, 0], np.uint64).view(np.uint8)

    @inlined
    def joined(wide: Any) -> Any:
        moved = _folded(wide, _vector(8, address(factors), 0), _and(wide, _vector(8, address(_LAST_BLOCK), 0)))
        half = _xor(_words(moved, 0, 4), _words(moved, 4, 4))
        return _xor(_words(half, 0, 2), _words(half, 2, 2))

    return joined


def _by_wide_folding(polynomial: int, least: int, short: Any, narrow: Any) -> Any:
    """Folds in registers of 512 bits; lengths below ``least`` (4 or more) are left to ``short``.

    The bytes before the first multiple of 64 come first, after zeros. If the range is at the start of the array,
    the register with them begins before the array. The bytes there are masked, not read, but the processor is slow
    if that memory is not mapped. So ``narrow`` takes such ranges unless they are long.
    """
    by_64, by_256 = _factors(64, polynomial), _factors(256, polynomial)
    joined, reduced = _joined(polynomial), _reduced(polynomial)

    @inlined
    def checksum(data: Any, position: int, limit: int) -> Any:
        if limit - position < least:
            return short(data, position, limit)
        odd = (limit - position) & (_WIDE_BLOCK - 1)
        position += odd
        if position < _WIDE_BLOCK and limit < _LONG:
            return narrow(data, position - odd, limit)
        wide = _xor(_last(data, position, odd), _vector(8, address(_INITIAL), odd))
        if position < limit:
            near, far = _pairs(8, by_64[0], by_64[1]), _pairs(8, by_256[0], by_256[1])
            overflow = _vector(8, address(_INITIAL), odd + _WIDE_BLOCK)
            wide = _folded(wide, near, _xor(_vector(8, data, position), overflow))
            wide, position = _along_8(wide, data, position + _WIDE_BLOCK, limit, near, far)
        return np.uint32(reduced(joined(wide)) ^ _ONES)

    return checksum


class Variant(NamedTuple):
    """One implementation of both checksums.

    Attributes:
        features: the processor features that it needs, by LLVM's names.
        crc32_at: the function for CRC-32.
        crc32c_at: the function for CRC-32C.
    """

    features: frozenset[str]
    crc32_at: Any
    crc32c_at: Any


# From how many bytes on folding pays. Below, CRC-32C has an instruction, CRC-32 only tables.
_LEAST: Final = _BLOCK
_LEAST_C: Final = 128
_LEAST_WIDE: Final = 4
_LONG: Final = 1024
_LEAST_WIDE_C: Final = 96


def _variants() -> dict[str, Variant]:
    """The variants by name, the fastest first."""
    table, instruction = _by_table(IEEE), _by_instruction(True)
    clmul = frozenset({"pclmul", "ssse3", "crc32"})
    folded, folded_c = _by_folding(IEEE, _LEAST, table), _by_folding(CASTAGNOLI, _LEAST_C, instruction)
    return {
        "clmul512": Variant(
            clmul | {"vpclmulqdq", "avx512f", "avx512bw"},
            _by_wide_folding(IEEE, _LEAST_WIDE, table, inner(folded.py_func)),
            _by_wide_folding(CASTAGNOLI, _LEAST_WIDE_C, instruction, inner(folded_c.py_func)),
        ),
        "clmul": Variant(clmul, folded, folded_c),
        "arm": Variant(frozenset({"crc"}), _by_instruction(False), instruction),
        "table": Variant(frozenset(), table, _by_table(CASTAGNOLI)),
    }


def _available(features: str) -> list[str]:
    """The names of the variants for a processor with these features ("+sse2,-avx,…"), the fastest first."""
    present = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    return [name for name, variant in VARIANTS.items() if variant.features <= present]


def _chosen(requested: str, available: list[str]) -> str:
    choices = {"auto": available[0], "hardware": available[0], "table": "table"}
    if requested not in choices:
        raise Misuse(f"{VARIABLE} is {requested!r}; set it to auto, hardware or table")
    if requested == "hardware" and choices[requested] == "table":
        raise Misuse(f"{VARIABLE} is 'hardware', but this processor has no instructions for checksums; use auto")
    return choices[requested]


VARIANTS: Final = _variants()
# What numba compiles for (its own settings may have narrowed what the processor has), and puts into its cache's keys.
_FEATURES: Final[str] = cpu_target.target_context.codegen().magic_tuple()[2]
AVAILABLE: Final = _available(_FEATURES)
CHOICE: Final = _chosen(os.environ.get(VARIABLE) or "auto", AVAILABLE)
_SOURCE: Final = inspect.getsource(sys.modules[__name__]) + inspect.getsource(arrays)
FINGERPRINT: Final = f"{CHOICE}_{hashlib.sha256(_SOURCE.encode()).hexdigest()[:12]}"

# The functions, as the header describes them.
crc32_at: Final = VARIANTS[CHOICE].crc32_at
crc32c_at: Final = VARIANTS[CHOICE].crc32c_at
