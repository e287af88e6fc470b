"""``ack_set`` of MESSAGE, ACK and message ids: which messages of a batch are still unacknowledged.

A bit set in 64-bit words, the lowest word first, as java.util.BitSet writes them. A bit that is **set** marks a message
that is not acknowledged yet; zero words at the end are omitted. In MESSAGE, only messages with a set bit are for the
application; without any word, all of them are.

Source: PIP-54; client-cpp ``BitSet.h`` and observations of its version 4.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wirekit.errors import Misuse

WORD = 64


def unacknowledged(words: Sequence[int]) -> list[int]:
    """The batch indexes with a set bit.

    Args:
        words: the words of the field, signed or unsigned.

    >>> unacknowledged([-2, 63])[:3], len(unacknowledged([-2, 63]))
    ([1, 2, 3], 69)
    """
    return [
        WORD * place + bit
        for place, word in enumerate(words)
        for bit in range(WORD if word < 0 else word.bit_length())
        if word >> bit & 1
    ]


def is_unacknowledged(words: Sequence[int], index: int) -> bool:
    """Whether the bit of a batch index is set.

    >>> [is_unacknowledged([-2, 63], index) for index in (0, 63, 69, 70, 128)]
    [False, True, True, False, False]
    """
    place, bit = divmod(index, WORD)
    return place < len(words) and bool(words[place] >> bit & 1)


def acknowledged(words: Sequence[int], size: int) -> list[int]:
    """The batch indexes without a set bit.

    Args:
        words: the words of the field.
        size: number of messages in the batch, which the words do not contain.

    >>> acknowledged([-2, 63], 70)
    [0]
    """
    open_ = set(unacknowledged(words))
    return [index for index in range(size) if index not in open_]


def ack_set(indexes: Iterable[int]) -> list[int]:
    """The signed words in which the bits of these unacknowledged batch indexes are set.

    Raises:
        Misuse: an index is below 0.

    >>> ack_set(range(1, 70))
    [-2, 63]
    >>> ack_set([])
    []
    """
    words: list[int] = []
    for index in indexes:
        if index < 0:
            raise Misuse(f"a batch index must be 0 or more, not {index}")
        place, bit = divmod(index, WORD)
        words += [0] * (place + 1 - len(words))
        words[place] |= 1 << bit
    return [word - (1 << WORD) if word >> WORD - 1 else word for word in words]
