"""A limit: what all workers of a cluster together may ask of one service. A cluster keeps a document for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from parallelrun_core.documents.codecs import FieldsCodec, definition_fields
from parallelrun_core.documents.collection import Definitions
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.patterns import LIMIT_NAME
from parallelrun_core.problems import validated
from parallelrun_core.spec.problems import problem_of
from parallelrun_core.untrusted.document import load_document

_MOST_PER_MINUTE: Final = 100_000_000
_FOLDER: Final = "limits"
_MAX_BYTES: Final = 1 << 16


class Limit(BaseModel):
    """A limit of one service. At least one of the three numbers is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=LIMIT_NAME)
    """The name by which jobs and scripts ask for permits."""
    requests_per_minute: int | None = Field(default=None, ge=1, le=_MOST_PER_MINUTE)
    """Calls that begin in any minute."""
    tokens_per_minute: int | None = Field(default=None, ge=1, le=10_000 * _MOST_PER_MINUTE)
    """Tokens that the calls which begin in any minute may have together; a script says how many each has."""
    in_flight: int | None = Field(default=None, ge=1, le=1_000_000)
    """Calls that are made at the same time."""

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.requests_per_minute is None and self.tokens_per_minute is None and self.in_flight is None:
            raise ValueError("set requests_per_minute, tokens_per_minute or in_flight")
        return self


def read_limit(document: object, *, name: str = "") -> Limit:
    """Read the definition of a limit.

    Args:
        name: its name, if the document may leave it out.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "a limit is a mapping, as in {name: openai, requests_per_minute: 3000}")
    return validated(Limit, dict(document), name=name, problem_of=problem_of)


def limit_of(definition: Mapping[str, Any] | str | Path) -> Limit:
    """Return the limit of a document, or of a file with it, as YAML or JSON.

    Raises:
        InvalidInput: the file can't be read, or with one problem for each wrong field.
    """
    if isinstance(definition, Mapping):
        return read_limit(dict(definition))
    try:
        return read_limit(load_document(Path(definition).read_bytes()))
    except OSError as error:
        raise InvalidInput.at("", f"{definition}: {error.strerror or error}") from error


LimitCatalog: TypeAlias = Definitions[Limit]


def limit_catalog(root: Path) -> LimitCatalog:
    """Returns the limits below a cluster's root folder."""
    return Definitions(
        FileStore(root, _FOLDER, max_bytes=_MAX_BYTES),
        FieldsCodec(definition_fields, Limit.model_validate, repair_hint="define it again"),
        noun="limit",
        create_hint="define one with `parallelrun limit create -f FILE`, or give `parallelrun run` a --limit FILE",
    )
