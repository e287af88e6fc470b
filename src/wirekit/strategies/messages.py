"""Draws protobuf messages: presence, lists, nesting, unknown fields."""

from __future__ import annotations

from typing import Any

from wirekit.compiler.values import LENGTH, Names
from wirekit.strategies.drawing import Drawing
from wirekit.wire.protobuf import BYTES, VARINT, Message, refused
from wirekit.wire.protobuf import Field as MessageField

MESSAGES = 3
"""The nesting depth of protobuf messages; required messages are not counted."""


class Messages(Drawing):
    """Draws messages."""

    def _message(self, message: Message, forced: dict[Names, Any]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        lengths = {names[0]: count for names, count in forced.items() if names[1:] == (LENGTH,)}
        fixed = {names[0]: item for names, item in forced.items() if len(names) == 1}
        if self.caller_fields:
            fixed |= self._caller_values((field.name, field.table) for field in message.fields.values())
        chosen = self._chosen(message, fixed)
        for field in message.fields.values():
            inside = {names[1:]: item for names, item in forced.items() if names[0] == field.name and len(names) > 1}
            self.path.append(field.name)
            if field.name in fixed:
                value[field.name] = fixed[field.name]
            elif field.repeated:
                count = lengths.get(field.name, 1 + self.upto(1) if field.name in chosen else None)
                if count is not None:
                    value[field.name] = [self._scalar(field, {}) for _ in range(count)]
            elif field.required or field.name in chosen or inside:
                value[field.name] = self._scalar(field, inside)
            self.path.pop()
        refusals = [name for name, _, _ in refused(message, value.get)]
        if refusals:
            value["$keep"] = refusals
        if self.pieces > 0 and self.chance(10):
            value["$unknown"] = [self._unknown(message) for _ in range(1 + self.upto(1))]
        return value

    def _chosen(self, message: Message, fixed: dict[str, Any]) -> set[str]:
        """Names of the optional fields to fill in: a few, or the one that a field selects."""
        selector = message.by_name.get(message.selector)
        optional = every = [field for field in message.fields.values() if not field.required]
        if self.messages >= MESSAGES or self.pieces <= 0:
            optional = [field for field in optional if field.message is None]
        if selector is not None:
            selected = message.fields.get(fixed.setdefault(selector.name, self._scalar(selector, {})))
            if selected in (every if self.clean else optional) and (self.clean or not self.chance(4)):
                return {selected.name}
        if not optional or self.pieces <= 0:
            return set()
        return {self.one_of(optional).name for _ in range(self.upto(4))}

    def _scalar(self, field: MessageField, forced: dict[Names, Any]) -> Any:
        self.pieces -= 1
        if field.message is not None:
            self.messages += 1
            value = self._message(field.message, forced)
            self.messages -= 1
            return value
        if field.kind == "bool":
            return self.upto(1) == 1
        if field.fixed and field.fixed[1] in "df":
            return self.choices.real(field.fixed[1], nan=False)
        if field.table is not None and (self.clean or not self.chance(8)):
            return int(self.one_of(list(field.table)))
        if field.kind == "string":
            return self.choices.text()
        if field.wire_type == BYTES:
            return self.choices.data()
        if field.fixed:
            bits = 32 if field.fixed[1] in "Ii" else 64
            low = 0 if field.fixed[1].isupper() else -(1 << bits - 1)
            return self.choices.integer(low, low + (1 << bits) - 1)
        return self.choices.integer(field.low, field.high)

    def _unknown(self, message: Message) -> dict[str, Any]:
        """A field that the descriptor lacks."""
        number = 1 + max(message.fields, default=0) + self.upto(1000)
        wire_type = self.one_of([0, 2, 1, 5])
        if wire_type == VARINT:
            return {"number": number, "wire_type": wire_type, "value": self.choices.integer(0, (1 << 64) - 1)}
        data = self.choices.data() if wire_type == BYTES else self.choices.exactly(8 if wire_type == 1 else 4)
        return {"number": number, "wire_type": wire_type, "value": data.hex()}
