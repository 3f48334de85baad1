"""Apache Thrift's compact protocol, in which the metadata of Parquet files is written.

The source of its rules is the specification of Apache Thrift, `doc/specs/thrift-compact-protocol.md`.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
I16: Final = 4
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
MAP: Final = 11
STRUCT: Final = 12

_STOP: Final = 0
_LONG_LIST: Final = 15
_DEEPEST: Final = 32
"""Structures in structures; those of Parquet have five."""


class Decoder:
    """Reads values one after the other.

    Raises:
        ValueError: from any method, where the bytes end too early, or are not what this protocol writes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._depth = 0
        self.at = 0
        """Where the next value begins."""

    def struct(self) -> dict[int, Any]:
        """Read a structure: values by the numbers of their fields."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("structures in structures without an end")
        values = {}
        number = 0
        while header := self.field(number):
            number, kind = header
            values[number] = self.value(kind)
        self._depth -= 1
        return values

    def field(self, last: int) -> tuple[int, int] | None:
        """Read the beginning of a field: its number, and the type of its value. None: the structure ends.

        Args:
            last: the number of the field before; 0: none.
        """
        byte = self._byte()
        if byte == _STOP:
            return None
        step = byte >> 4
        return (last + step if step else self._number()), byte & 15

    def items(self) -> tuple[int, int]:
        """Read the beginning of a list: how many values it has, and their type."""
        byte = self._byte()
        count = byte >> 4
        return (self._varint() if count == _LONG_LIST else count), byte & 15

    def value(self, kind: int) -> Any:
        """Read a value of a type, for a field."""
        read = self._READ.get(kind)
        if read is None:
            raise ValueError(f"type {kind} is none of this protocol")
        return read(self)

    def _list(self) -> list[Any]:
        count, kind = self.items()
        return [self._item(kind) for _ in range(count)]

    def _map(self) -> list[tuple[Any, Any]]:
        count = self._varint()
        kinds = self._byte() if count else 0
        return [(self._item(kinds >> 4), self._item(kinds & 15)) for _ in range(count)]

    def _item(self, kind: int) -> Any:
        return self._byte() == TRUE if kind in (TRUE, FALSE) else self.value(kind)

    def _number(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _byte(self) -> int:
        try:
            byte = self._data[self.at]
        except IndexError:
            raise ValueError("the data ends within a value") from None
        self.at += 1
        return byte

    def _binary(self) -> bytes:
        return self._bytes(self._varint())

    def _bytes(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self._data):
            raise ValueError("the data ends within a value")
        value, self.at = self._data[self.at : end], end
        return value

    _READ: ClassVar[dict[int, Callable[[Any], Any]]] = {
        TRUE: lambda _: True, FALSE: lambda _: False, BYTE: _byte, I16: _number, I32: _number, I64: _number,
        DOUBLE: lambda decoder: decoder._bytes(8), BINARY: _binary, LIST: _list, SET: _list, MAP: _map, STRUCT: struct,
    }  # fmt: skip


def encode(fields: Iterable[tuple[int, int, Any]]) -> bytes:
    """Return a structure of these fields: number, type, and value.

    Numbers grow from one to the next, by 15 at most. The value of a structure is what this returned for it, and that of
    a list the type of its values, and these.
    """
    encoded = bytearray()
    last = 0
    for number, kind, value in fields:
        encoded.append((number - last) << 4 | kind)
        encoded += _encoded(kind, value)
        last = number
    encoded.append(_STOP)
    return bytes(encoded)


def _encoded(kind: int, value: Any) -> bytes:
    if kind in (I32, I64):
        return _varint(value << 1 if value >= 0 else ~value << 1 | 1)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return bytes(value)
    item_kind, items = value
    count = len(items)
    header = bytes([min(count, _LONG_LIST) << 4 | item_kind]) + (_varint(count) if count >= _LONG_LIST else b"")
    return header + b"".join([_encoded(item_kind, item) for item in items])


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
