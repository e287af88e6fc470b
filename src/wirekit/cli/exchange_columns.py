"""One frame of a capture by its number, with its request or its response, by columns."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from wirekit.capture.links import Choice
from wirekit.cli.exchange import Exchange, no_frame
from wirekit.cli.filters import Selection
from wirekit.cli.filters_columns import Selected
from wirekit.cli.frame_numbers import Identity, NumberedFrames, NumberedWindows, StopReading, WindowItem
from wirekit.conversation import Frame
from wirekit.pipeline.inputs import Input


class ExchangeWindows(NumberedWindows):
    """Finds a frame by its number.

    Attributes:
        exchange: the frame, once it is found.

    Args:
        files, choice: as for ``NumberedWindows``.
        number: the number of the frame.
    """

    def __init__(self, files: tuple[Input, ...], choice: Choice, number: int) -> None:
        super().__init__(files, choice, Selected(Selection()))
        self.exchange: Exchange | None = None
        self._number = number
        self._identity: Identity = "", "", 0

    def read(self) -> bool:
        """Reads as far as the frame, or as its response if it is a request; False if objects must read the capture.

        Raises:
            Misuse: no frame has this number.
        """
        with suppress(StopReading):
            if not super().read():
                return False
            if self.exchange is None:
                raise no_frame(self.job.inputs[0].name, self._number, self.numbers.frames)
        return True

    def window(self, parts: list[NumberedFrames], items: list[WindowItem]) -> None:
        """Looks for the frame in a window, and then for its response."""
        if self.exchange is None:
            self.exchange = self._exchange(parts, items)
        if self.exchange is not None and self.exchange.awaits:
            self.exchange = self.exchange._replace(response=self._response(parts, items))
        if self.exchange is not None and (self.exchange.response is not None or not self.exchange.awaits):
            raise StopReading

    def _exchange(self, parts: list[NumberedFrames], items: list[WindowItem]) -> Exchange | None:
        for each in items:
            if each.numbered.frame == self._number and isinstance(each.numbered.item, Frame):
                self._identity = each.identity
                return Exchange(each.numbered.link, each.numbered.item, request=each.numbered.item.request)
        for part in parts:
            for place in part.fresh[part.number[part.fresh] == self._number].tolist():
                link = part.link(int(part.index.connection[place]))
                _, frame = next(part.with_requests(np.array([place])))
                self._identity = link.name, frame.side, frame.offset
                return Exchange(link, frame, request=frame.request)
        return None

    def _response(self, parts: list[NumberedFrames], items: list[WindowItem]) -> Frame | None:
        name, side, offset = self._identity
        for each in items:
            item = each.numbered.item
            request = item.request if isinstance(item, Frame) and each.identity[0] == name else None
            if isinstance(item, Frame) and request is not None and (request.side, request.offset) == (side, offset):
                return item
        for part in parts:
            for place in part.places_of(self._identity):
                for response in np.flatnonzero(part.index.request == place).tolist():
                    return next(part.with_requests(np.array([response])))[1]
        return None
