"""The error for members that scripts of v1 use and our classes lack: it says what to do in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar


def _missing(owner: type, name: str, obj: object) -> AttributeError:
    remedies = (vars(base).get("INSTEAD", {}).get(name) for base in owner.__mro__)
    remedy = next(filter(None, remedies), "see docs/from-azure-ml.md")
    message = f"ParallelRun has no {owner.__name__.strip('_')}.{name} ({remedy})"
    return AttributeError(message, name=name, obj=obj)  # of these, Python makes "Did you mean"


class _ReportsMissing(type):
    """The kind of such classes: they are asked for members themselves, as in `Dataset.File.upload_directory`."""

    if not TYPE_CHECKING:  # a checker of types reports what is missing by itself

        def __getattr__(cls, name: str) -> Any:
            raise _missing(cls, name, cls)


class ReportsMissing(metaclass=_ReportsMissing):
    """A class of v1, with those of its members that public samples use."""

    INSTEAD: ClassVar[Mapping[str, str]] = {}
    """Remedies for members that scripts try, by their names; those of base classes count, too."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _missing(type(self), name, self)
