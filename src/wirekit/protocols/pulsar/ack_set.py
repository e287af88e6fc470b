"""``ack_set`` of MESSAGE, ACK and message ids: which messages of a batch are still unacknowledged.

64-bit words, the little one first, as java.util.BitSet writes them: a bit that is **set** stands for a message that is
not acknowledged yet; words of zero at the end are left out. In MESSAGE only the messages whose bit is set are for the
application; without any word all of them are.

Source: PIP-54; client-cpp ``BitSet.h`` and the runs of its 4.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wirekit.errors import Misuse

WORD = 64


def unacknowledged(words: Sequence[int]) -> list[int]:
    """The batch indexes whose bit is set.

    Args:
        words: as the field holds them, signed or not.

    >>> unacknowledged([-2, 63])[:3], len(unacknowledged([-2, 63]))
    ([1, 2, 3], 69)
    """
    return [
        WORD * place + bit
        for place, word in enumerate(words)
        for bit in range(WORD if word < 0 else word.bit_length())
        if word >> bit & 1
    ]


def acknowledged(words: Sequence[int], size: int) -> list[int]:
    """The batch indexes whose bit is not set.

    Args:
        words: as the field holds them.
        size: messages in the batch, which the words do not tell.

    >>> acknowledged([-2, 63], 70)
    [0]
    """
    open_ = set(unacknowledged(words))
    return [index for index in range(size) if index not in open_]


def ack_set(indexes: Iterable[int]) -> list[int]:
    """The words in which the bits of these unacknowledged batch indexes are set, signed as the field has them.

    Raises:
        Misuse: for an index below 0.

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
