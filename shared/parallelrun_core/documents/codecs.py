"""Codecs: how values become the bytes of documents, and back."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.errors import CorruptLog, NewerSchema

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T")
Record = TypeVar("Record", bound=msgspec.Struct)

_SCHEMA: Final = "schema"
_SEAL: Final = "seal"


class Codec(Protocol[T]):
    """Turns values of one type into bytes and back."""

    def encode(self, value: T) -> bytes:
        """Returns the bytes of a value, with the version of their form."""
        ...

    def decode(self, data: bytes, label: str) -> T:
        """Returns the value that these bytes are.

        Args:
            label: names the document in messages.

        Raises:
            NewerSchema: a later release has written them.
            CorruptLog: they are no such value.
        """
        ...


@dataclass(frozen=True)
class RecordCodec(Generic[Record]):
    """A struct as indented JSON with a version and a checksum (`schema.py`)."""

    type: type[Record]

    def encode(self, value: Record) -> bytes:
        return encode(value)

    def decode(self, data: bytes, label: str) -> Record:
        return decode(data, self.type, label)


@dataclass(frozen=True)
class FieldsCodec(Generic[T]):
    """A value as JSON fields, which people may also write by hand: with a version, and sealed if there is a key.

    Args:
        to_fields: the fields of a value.
        from_fields: the value of fields; raises ValueError, KeyError or TypeError if they are none.
        key: only what was sealed with it is believed; empty: whatever is there.
        repair_hint: what to do about one that can't be read, for messages.
    """

    to_fields: Callable[[T], Mapping[str, object]]
    from_fields: Callable[[dict[str, Any]], T]
    key: bytes = b""
    repair_hint: str = ""

    def encode(self, value: T) -> bytes:
        fields = {**self.to_fields(value)}
        seal = {_SEAL: _seal(self.key, fields)} if self.key else {}
        return json.dumps({_SCHEMA: SCHEMA, **fields, **seal}, indent=2).encode() + b"\n"

    def decode(self, data: bytes, label: str) -> T:
        try:
            fields = json.loads(data)
            schema, seal = int(fields.pop(_SCHEMA, SCHEMA)), str(fields.pop(_SEAL, ""))
            if schema > SCHEMA:
                raise NewerSchema(
                    f"The {label} has schema {schema}; this release reads up to {SCHEMA}. Update this service."
                )
            if not self._is_sealed(fields, seal):
                raise CorruptLog(f"The {label} was not defined through this cluster's API{self._hint}")
            return self.from_fields(fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptLog(f"The {label} can't be read{self._hint or f': {error}'}") from error

    def _is_sealed(self, fields: Mapping[str, object], seal: str) -> bool:
        return not self.key or hmac.compare_digest(_seal(self.key, fields), seal)

    @property
    def _hint(self) -> str:
        return f": {self.repair_hint}" if self.repair_hint else ""


def definition_fields(definition: BaseModel) -> dict[str, object]:
    """The fields of a definition that differ from their defaults, as users may write them."""
    return definition.model_dump(mode="json", exclude_defaults=True)


def _seal(key: bytes, fields: Mapping[str, object]) -> str:
    return hmac.new(key, json.dumps(fields, sort_keys=True).encode(), "sha256").hexdigest()
