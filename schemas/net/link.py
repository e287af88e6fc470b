"""Link layers of captures. Sources: IEEE 802.3, 802.1Q; LINKTYPE_* descriptions of the tcpdump group."""

from __future__ import annotations

from wirekit.schemas.net.ip import IPV4, IPV6
from wirekit.values import SymbolTable
from wirekit.wire import Bit, Bits, Bytes, Ref, Struct, Switch, Symbols, rest, this, uint8, uint16, uint32

ETHER_TYPES = SymbolTable(
    "ether_type",
    {
        0x0800: "IPV4",
        0x0806: "ARP",
        0x8100: ("VLAN", "802.1Q tag"),
        0x86DD: "IPV6",
        0x88A8: ("QINQ", "802.1ad outer tag"),
        0x88CC: "LLDP",
    },
)


def _payload(by: object) -> Switch:
    vlan = Ref("net.vlan")
    return Switch(by, {0x0800: IPV4, 0x86DD: IPV6, 0x8100: vlan, 0x88A8: vlan}, default=rest())


VLAN = Struct(
    "tag" / Bits(uint16, "priority" / Bit(3), "drop_eligible" / Bit(1), "vlan_id" / Bit(12), order="msb"),
    "ether_type" / Symbols(uint16, ETHER_TYPES),
    "payload" / _payload(this.ether_type),
    name="Vlan",
)

ETHERNET = Struct(
    "destination_address" / Bytes(6),
    "source_address" / Bytes(6),
    "ether_type" / Symbols(uint16, ETHER_TYPES),
    "payload" / _payload(this.ether_type),
    "trailer" / rest() * "padding of short frames",
    name="Ethernet",
)

LINUX_COOKED = Struct(
    "packet_type" / uint16,
    "arphrd_type" / uint16,
    "address_length" / uint16,
    "address" / Bytes(8),
    "ether_type" / Symbols(uint16, ETHER_TYPES),
    "payload" / _payload(this.ether_type),
    "trailer" / rest(),
    name="LinuxCooked",
)

LINUX_COOKED_2 = Struct(
    "ether_type" / Symbols(uint16, ETHER_TYPES),
    "reserved" / uint16,
    "interface_index" / uint32,
    "arphrd_type" / uint16,
    "packet_type" / uint8,
    "address_length" / uint8,
    "address" / Bytes(8),
    "payload" / _payload(this.ether_type),
    "trailer" / rest(),
    name="LinuxCooked2",
)

# The family is in the byte order of the machine that captured, so each stands twice. AF_INET is 2 everywhere;
# AF_INET6 is 24 (NetBSD, OpenBSD), 28 (FreeBSD), 30 (Darwin), 10 (Linux).
_FAMILIES = {2: IPV4, 10: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}

LOOPBACK = Struct(
    "family" / uint32 * "AF_INET or AF_INET6, in the byte order of the machine that captured",
    "payload"
    / Switch(
        this.family,
        {**_FAMILIES, **{family << 24: node for family, node in _FAMILIES.items()}},
        default=rest(),
    ),
    "trailer" / rest(),
    name="Loopback",
)
