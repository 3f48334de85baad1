"""The base of all answers, and the types of their fields, with what the OpenAPI document says of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args

import msgspec
from msgspec import Meta

_Answer = TypeVar("_Answer", bound="Answer")

SCHEMAS: Final = "#/components/schemas"
"""The place of schemas in the OpenAPI document."""

if TYPE_CHECKING:
    _Literal = TypeVar("_Literal")
    OpenEnum = Annotated[_Literal, "open"]
else:

    class OpenEnum:
        """A text, which for type checkers and in the document is one of a `Literal`'s: `OpenEnum[Literal["a", "b"]]`.

        A client takes others as well, as a server of a later release may have more of them.
        """

        def __class_getitem__(cls, literal: Any) -> Any:
            return Annotated[str, Meta(extra_json_schema={"enum": list(get_args(literal))})]


Time = Annotated[str, Meta(examples=["2026-11-21T09:30:00.000Z"])]
"""RFC 3339, UTC, milliseconds."""
JobId = Annotated[str, Meta(examples=["job_01kav3x8n2h7q5m9c4t6"])]
JobStateText = Annotated[str, Meta(extra_json_schema={"$ref": f"{SCHEMAS}/JobState"})]
"""The state of a job: one of `JobState`, or of a later release's."""
StepStateText = Annotated[str, Meta(extra_json_schema={"$ref": f"{SCHEMAS}/StepState"})]
"""The state of a pipeline's step: one of `StepState`, or of a later release's."""
NodeStateText = Annotated[str, Meta(extra_json_schema={"$ref": f"{SCHEMAS}/NodeState"})]
"""The state of a node: one of `NodeState`, or of a later release's."""


def rfc3339(timestamp: float) -> str:
    """Seconds since the epoch as UTC with milliseconds: a `Time`."""
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """An answer, or a part of one."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any, /) -> Any:
        """Return a schema by which FastAPI knows the class as a `response_model`; its content is not pydantic's."""
        from pydantic_core import core_schema

        return core_schema.any_schema(ref=f"{cls.__module__}.{cls.__qualname__}:{id(cls)}")


def answer_of(model: type[_Answer], source: object, **fields: Any) -> _Answer:
    """Make an answer of something that has fields of the same names, which are the same in the answer.

    Args:
        fields: those that the source doesn't have, or has in another form.

    Raises:
        AttributeError: the source lacks another one.
    """
    same = {name: getattr(source, name) for name in model.__struct_fields__ if name not in fields}
    return model(**same, **fields)
