"""Numbers with symbols as dictionary arrays of their symbols."""

from __future__ import annotations

import json

import pyarrow as pa

SYMBOLS = b"wirekit.symbols"


def named(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose numbers with names are names: ``dictionary<int32, string>``; a number without one is its digits.

    Where two numbers share a name, only the first has it, so that ``build_columns`` gives the number back.

    >>> import wirekit
    >>> message = {"offset": 5, "message": {"magic": 0, "attributes": 9, "value": "6869"}}
    >>> batch = wirekit.columns("kafka.message_set", wirekit.encode("kafka.message_set", {"messages": [message]}))
    >>> named(batch)["message.attributes.timestamp_type"].to_pylist()
    ['LogAppendTime']
    """
    for index, field in enumerate(batch.schema):
        if field.metadata is None or SYMBOLS not in field.metadata or not pa.types.is_integer(field.type):
            continue
        names: dict[str, str] = {}
        for number, name in json.loads(field.metadata[SYMBOLS]).items():
            if name not in names.values():
                names[number] = name
        encoded = batch.column(index).dictionary_encode()
        words = [names.get(str(number), str(number)) for number in encoded.dictionary.to_pylist()]
        column = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(words, pa.string()))
        batch = batch.set_column(index, field.with_type(column.type), column)
    return batch
