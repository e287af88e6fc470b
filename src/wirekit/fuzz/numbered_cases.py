"""The cases of a layout by number: the same for the same seed, so that a run can continue where another run ended."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any

from wirekit.encoding import built_key
from wirekit.fuzz.cases import ORIGINAL, SOUND, Case, first_difference
from wirekit.strategies.bulk import bulk_frames, bulk_mutations

BLOCK = 128
"""The number of cases that are generated together."""
SOUND_OF_BLOCK = 16
SPREAD = 3
"""The number of mutations generated for each one that is used, because neighbours are of the same frame."""


class NumberedCases:
    """Cases by number: first the originals, then blocks of sound frames and damage.

    Args:
        key: a schema key, or a protocol's name for a frame of its client stream.
        seed: any number.
        context: as for ``wirekit.decode``.
        kinds: names of the mutations; by default all that the layout offers, and ``edited``.
        originals: bytes to begin with, and to damage.

    >>> cases = NumberedCases("kafka.sasl_token", 1)
    >>> cases[300] == NumberedCases("kafka.sasl_token", 1)[300]
    True
    """

    def __init__(
        self,
        key: str,
        seed: int,
        *,
        context: Mapping[str, Any] | None = None,
        kinds: Iterable[str] | None = None,
        originals: Sequence[bytes] = (),
    ) -> None:
        self.key = built_key(key)
        self.seed = seed
        self.context = dict(context or {})
        self.kinds = None if kinds is None else list(kinds)
        self.originals = list(originals)
        self._blocks: dict[int, list[Case]] = {}
        self._lock = threading.Lock()
        bulk_mutations(self.key, kinds=self.kinds)  # refuses unknown kinds

    def __getitem__(self, index: int) -> Case:
        if index < len(self.originals):
            return Case(self.key, self.originals[index], ORIGINAL, context=self.context)
        number, at = divmod(index - len(self.originals), BLOCK)
        with self._lock:
            if number not in self._blocks:
                self._blocks = {at: block for at, block in self._blocks.items() if at == number - 1}
                self._blocks[number] = self._block(number)
            return self._blocks[number][at]

    def sound(self, count: int) -> list[bytes]:
        """The first sound frames."""
        return list(islice(bulk_frames(self.key, seed=f"{self.seed} 0", context=self.context, clean=True), count))

    def _block(self, number: int) -> list[Case]:
        seed = f"{self.seed} {number}"
        frames = islice(bulk_frames(self.key, seed=seed, context=self.context, clean=True), SOUND_OF_BLOCK)
        cases = [Case(self.key, data, SOUND, context=self.context) for data in frames]
        damaged = list(
            islice(
                bulk_mutations(self.key, seed=seed, context=self.context, kinds=self.kinds, originals=self.originals),
                SPREAD * (BLOCK - SOUND_OF_BLOCK),
            )
        )
        for wrong in damaged[::SPREAD]:
            offset = first_difference(wrong.data, wrong.original)
            cases.append(Case(self.key, wrong.data, wrong.name, wrong.path, offset, self.context))
        Random(seed).shuffle(cases)
        return cases
