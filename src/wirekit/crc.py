"""Cyclic redundancy checks of any width, by the parameters and names of the RevEng catalogue.

Source: reveng.sourceforge.io/crc-catalogue: ``check`` is the checksum of the nine bytes ``123456789``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

REGISTER = 64
"""Bits of the register that a CRC is computed in, unless it is wider."""
CHECKED = b"123456789"


@dataclass(frozen=True)
class Crc:
    """The parameters of a CRC.

    Attributes:
        width: bits.
        poly: the polynomial without its highest term, the most significant bit first.
        init: the initial value of the register.
        refin, refout: whether the bits of each byte, and of the result, are reversed.
        xorout: the value that the result is XORed with.

    >>> hex(Crc(16, 0x1021, 0xFFFF)(b"123456789"))
    '0x29b1'
    """

    width: int
    poly: int
    init: int = 0
    refin: bool = False
    refout: bool = False
    xorout: int = 0

    @property
    def register(self) -> int:
        """Bits of the register."""
        return max(self.width, REGISTER)

    @property
    def first(self) -> int:
        """The initial register: reversed with ``refin``, else in its highest bits."""
        return reverse(self.init, self.width) if self.refin else self.init << self.register - self.width

    @cached_property
    def table(self) -> list[int]:
        """The table of register changes, one for each value of a byte."""
        if self.refin:
            poly = reverse(self.poly, self.width)
            table = list(range(256))
            for _ in range(8):
                table = [value >> 1 ^ (poly if value & 1 else 0) for value in table]
            return table
        top, mask = 1 << self.register - 1, (1 << self.register) - 1
        poly = self.poly << self.register - self.width
        table = [value << self.register - 8 for value in range(256)]
        for _ in range(8):
            table = [(value << 1 ^ (poly if value & top else 0)) & mask for value in table]
        return table

    def __call__(self, data: bytes | bytearray | memoryview) -> int:
        """The checksum of bytes."""
        table, value = self.table, self.first
        if self.refin:
            for byte in bytes(data):
                value = table[(value ^ byte) & 0xFF] ^ value >> 8
        else:
            shift, mask = self.register - 8, (1 << self.register) - 1
            for byte in bytes(data):
                value = table[value >> shift ^ byte] ^ value << 8 & mask
            value >>= self.register - self.width
        return (reverse(value, self.width) if self.refin != self.refout else value) ^ self.xorout


def reverse(number: int, width: int) -> int:
    """The lowest bits of a number in the opposite order."""
    return int(f"{number:0{width}b}"[::-1], 2)


def _mask(width: int) -> int:
    return (1 << width) - 1


CATALOGUE: dict[str, tuple[Crc, int]] = {
    "crc-3/gsm": (Crc(3, 0x3, 0, False, False, 0x7), 0x4),
    "crc-4/g-704": (Crc(4, 0x3, 0, True, True), 0x7),
    "crc-5/usb": (Crc(5, 0x05, 0x1F, True, True, 0x1F), 0x19),
    "crc-7/mmc": (Crc(7, 0x09), 0x75),
    "crc-8/autosar": (Crc(8, 0x2F, 0xFF, False, False, 0xFF), 0xDF),
    "crc-8/bluetooth": (Crc(8, 0xA7, 0, True, True), 0x26),
    "crc-8/darc": (Crc(8, 0x39, 0, True, True), 0x15),
    "crc-8/dvb-s2": (Crc(8, 0xD5), 0xBC),
    "crc-8/i-432-1": (Crc(8, 0x07, 0, False, False, 0x55), 0xA1),
    "crc-8/maxim-dow": (Crc(8, 0x31, 0, True, True), 0xA1),
    "crc-8/nrsc-5": (Crc(8, 0x31, 0xFF), 0xF7),
    "crc-8/rohc": (Crc(8, 0x07, 0xFF, True, True), 0xD0),
    "crc-8/sae-j1850": (Crc(8, 0x1D, 0xFF, False, False, 0xFF), 0x4B),
    "crc-8/smbus": (Crc(8, 0x07), 0xF4),
    "crc-8/tech-3250": (Crc(8, 0x1D, 0xFF, True, True), 0x97),
    "crc-8/wcdma": (Crc(8, 0x9B, 0, True, True), 0x25),
    "crc-10/atm": (Crc(10, 0x233), 0x199),
    "crc-11/flexray": (Crc(11, 0x385, 0x01A), 0x5A3),
    "crc-12/dect": (Crc(12, 0x80F), 0xF5B),
    "crc-15/can": (Crc(15, 0x4599), 0x059E),
    "crc-16/arc": (Crc(16, 0x8005, 0, True, True), 0xBB3D),
    "crc-16/cdma2000": (Crc(16, 0xC867, 0xFFFF), 0x4C06),
    "crc-16/dnp": (Crc(16, 0x3D65, 0, True, True, 0xFFFF), 0xEA82),
    "crc-16/en-13757": (Crc(16, 0x3D65, 0, False, False, 0xFFFF), 0xC2B7),
    "crc-16/genibus": (Crc(16, 0x1021, 0xFFFF, False, False, 0xFFFF), 0xD64E),
    "crc-16/gsm": (Crc(16, 0x1021, 0, False, False, 0xFFFF), 0xCE3C),
    "crc-16/ibm-3740": (Crc(16, 0x1021, 0xFFFF), 0x29B1),
    "crc-16/ibm-sdlc": (Crc(16, 0x1021, 0xFFFF, True, True, 0xFFFF), 0x906E),
    "crc-16/kermit": (Crc(16, 0x1021, 0, True, True), 0x2189),
    "crc-16/maxim-dow": (Crc(16, 0x8005, 0, True, True, 0xFFFF), 0x44C2),
    "crc-16/mcrf4xx": (Crc(16, 0x1021, 0xFFFF, True, True), 0x6F91),
    "crc-16/modbus": (Crc(16, 0x8005, 0xFFFF, True, True), 0x4B37),
    "crc-16/profibus": (Crc(16, 0x1DCF, 0xFFFF, False, False, 0xFFFF), 0xA819),
    "crc-16/spi-fujitsu": (Crc(16, 0x1021, 0x1D0F), 0xE5CC),
    "crc-16/t10-dif": (Crc(16, 0x8BB7), 0xD0DB),
    "crc-16/umts": (Crc(16, 0x8005), 0xFEE8),
    "crc-16/usb": (Crc(16, 0x8005, 0xFFFF, True, True, 0xFFFF), 0xB4C8),
    "crc-16/xmodem": (Crc(16, 0x1021), 0x31C3),
    "crc-24/ble": (Crc(24, 0x00065B, 0x555555, True, True), 0xC25A56),
    "crc-24/flexray-a": (Crc(24, 0x5D6DCB, 0xFEDCBA), 0x7979BD),
    "crc-24/lte-a": (Crc(24, 0x864CFB), 0xCDE703),
    "crc-24/openpgp": (Crc(24, 0x864CFB, 0xB704CE), 0x21CF02),
    "crc-32/aixm": (Crc(32, 0x814141AB), 0x3010BF7F),
    "crc-32/autosar": (Crc(32, 0xF4ACFB13, _mask(32), True, True, _mask(32)), 0x1697D06A),
    "crc-32/base91-d": (Crc(32, 0xA833982B, _mask(32), True, True, _mask(32)), 0x87315576),
    "crc-32/bzip2": (Crc(32, 0x04C11DB7, _mask(32), False, False, _mask(32)), 0xFC891918),
    "crc-32/cksum": (Crc(32, 0x04C11DB7, 0, False, False, _mask(32)), 0x765E7680),
    "crc-32/iscsi": (Crc(32, 0x1EDC6F41, _mask(32), True, True, _mask(32)), 0xE3069283),
    "crc-32/iso-hdlc": (Crc(32, 0x04C11DB7, _mask(32), True, True, _mask(32)), 0xCBF43926),
    "crc-32/jamcrc": (Crc(32, 0x04C11DB7, _mask(32), True, True), 0x340BC6D9),
    "crc-32/mpeg-2": (Crc(32, 0x04C11DB7, _mask(32)), 0x0376E6E7),
    "crc-32/xfer": (Crc(32, 0x000000AF), 0xBD0BE338),
    "crc-40/gsm": (Crc(40, 0x0004820009, 0, False, False, _mask(40)), 0xD4164FC646),
    "crc-64/ecma-182": (Crc(64, 0x42F0E1EBA9EA3693), 0x6C40DF5F0B497347),
    "crc-64/go-iso": (Crc(64, 0x1B, _mask(64), True, True, _mask(64)), 0xB90956C775A41001),
    "crc-64/nvme": (Crc(64, 0xAD93D23594C93659, _mask(64), True, True, _mask(64)), 0xAE8B14860A799888),
    "crc-64/redis": (Crc(64, 0xAD93D23594C935A9, 0, True, True), 0xE9C6D914C4B8D9CA),
    "crc-64/we": (Crc(64, 0x42F0E1EBA9EA3693, _mask(64), False, False, _mask(64)), 0x62EC59E3F1A4F00A),
    "crc-64/xz": (Crc(64, 0x42F0E1EBA9EA3693, _mask(64), True, True, _mask(64)), 0x995DC9BBDF1939FA),
}
"""{name: (parameters, check)} of the CRCs in common use."""
