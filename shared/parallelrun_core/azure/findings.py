"""The problems of a document, and notes for its submitter, gathered while it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from parallelrun_core.errors import InvalidInput, Problem, UnsafePath
from parallelrun_core.names.assets import Names
from parallelrun_core.problems import Problems, did_you_mean
from parallelrun_core.spec.problems import problem_of
from parallelrun_core.storage.supported import absolute_path

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that is accepted, but not done here or not as in Azure ML."""

    pointer: str
    """The place in the document; empty when the note is about the whole."""
    message: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}" if self.pointer else self.message


@dataclass
class Findings(Problems):
    """Problems and notes, in the order in which they were found."""

    notes: list[Note] = field(default_factory=list)
    names: Names | None = None
    """The source of names of assets; None if nobody can be asked."""

    def place(self, text: str, pointer: str = "", *, is_output: bool = False) -> str:
        """The location that stands for another one here: the site file may say so.

        Args:
            pointer: the place of the text in the document.
            is_output: a job is to write there.

        Raises:
            UnsafePath: it leaves its datastore.
        """
        try:
            return self.names.place(text, is_output=is_output) if self.names is not None else text
        except UnsafePath as error:
            raise UnsafePath(problems=tuple(replace(each, pointer=pointer) for each in error.problems)) from error

    def note(self, pointer: str, message: str) -> None:
        self.notes.append(Note(pointer, message))

    def validate(
        self,
        model: type[Model],
        document: object,
        pointer: str,
        hints: Mapping[str, str] = {},
        *,
        ignores_unknown: bool = False,
    ) -> Model | None:
        """A part of a document as its model, or None when something in it is wrong.

        Args:
            hints: what to do, by the name of the wrong or unknown field.
            ignores_unknown: Azure ML's client lets unknown fields of this part through, and nobody reads them: each is
                a note.
        """
        if ignores_unknown and isinstance(document, dict):
            document = self._without_unknown(model, document, pointer)
        try:
            return model.model_validate(document)
        except ValidationError as error:
            for details in error.errors():
                problem = problem_of(model, details)
                name = problem.pointer.rpartition("/")[2]
                hint = hints.get(name, "")
                hint = hint or problem.hint if details["type"] == "extra_forbidden" else problem.hint or hint
                self.wrong(pointer + problem.pointer, problem.message, hint)
            return None

    def _without_unknown(self, model: type[BaseModel], document: Mapping[Any, Any], pointer: str) -> dict[Any, Any]:
        field_names = {field.alias or name for name, field in model.model_fields.items()}
        for name in document:
            if name not in field_names:
                note = "unknown field: Azure ML ignores it, and so does ParallelRun"
                self.note(f"{pointer}/{name}", "; ".join(filter(None, (note, did_you_mean(name, field_names)))))
        return {name: value for name, value in document.items() if name in field_names}

    def take(self, error: InvalidInput, origins: Mapping[str, str], default: str = "") -> None:
        """Add the problems of a job spec, located in the document that it was read from.

        Args:
            origins: from a field of the job spec to where its value came from.
            default: the origin of all other fields.
        """
        self.problems += (relocated(problem, origins, default) for problem in error.problems)


def relocated(problem: Problem, origins: Mapping[str, str], default: str = "") -> Problem:
    """A problem of a job spec, located in the document that it was read from (see `Findings.take`)."""
    field, _, rest = problem.pointer.removeprefix("/").partition("/")
    name, _, part = rest.partition("/")
    origin = origins.get(f"{field}/{name}") if name else None
    if origin is None:
        origin, part = origins.get(field, f"{default}/{field}" if field else default), rest
    return replace(problem, pointer=f"{origin}/{part}" if part else origin)


@dataclass(frozen=True)
class DocumentLocation:
    """The place of a part of a document, and the folder that its relative paths start from."""

    pointer: str
    folder: Path | None
    """None: the document came over the network, without files beside it."""

    def at(self, *names: str | int) -> str:
        return "/".join([self.pointer, *map(str, names)])

    def below(self, *names: str | int) -> DocumentLocation:
        return DocumentLocation(self.at(*names), self.folder)

    def absolute(self, path: str) -> str:
        """A path of the document, made absolute where it can be."""
        try:
            return absolute_path(path, self.folder)
        except ValueError as error:
            raise InvalidInput.at(self.pointer, str(error)) from error


def as_mapping(value: object, pointer: str, findings: Findings) -> dict[str, Any]:
    """A part of a document that must be a mapping; empty when it is missing, or isn't one."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    findings.wrong(pointer, "must be a mapping")
    return {}


def quoted(names: Iterable[str]) -> str:
    """Names for a message: `a, b`, or `none`."""
    return ", ".join(names) or "none"
