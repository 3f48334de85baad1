"""Gathers what is wrong with a document that a user wrote, each problem with its place and what was
probably meant ("did you mean")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.names.patterns import in_words

if TYPE_CHECKING:
    from pydantic import BaseModel

_Model = TypeVar("_Model", bound="BaseModel")

_EXPECTED: Final = {
    "bool": "true or false",
    "dict": "a mapping",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "a mapping",
    "string": "a string",
    "tuple": "a list",
}
"""By the beginning of pydantic's name for an error; its end says whether the type is wrong, or the content."""
_WRONG_TYPE: Final = ("type", "parsing", "from_float", "attributes_type", "parsing_size")


def closest(name: object, names: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the name that looks most like another one; empty if none does.

    Args:
        cutoff: the least similarity, from 0 to 1.
    """
    return next(iter(get_close_matches(str(name), list(names), n=1, cutoff=cutoff)), "")


def did_you_mean(name: object, names: Iterable[str], otherwise: str = "") -> str:
    """Return the question whether one of the names that there are was meant; `otherwise` if none looks like it."""
    return was_meant(closest(name, names)) or otherwise


def was_meant(name: str) -> str:
    """Return the question whether this was meant; empty if it is nothing."""
    return f"did you mean {name!r}?" if name else ""


def another_name(name: str, pointer: str = "/name") -> Problem:
    """Return what is wrong with a document that calls itself another name than it must have."""
    hint = "leave it out, or change one of them"
    return Problem(pointer=pointer, message=f"it is another name than {name!r}", hint=hint)


@dataclass
class Problems:
    """The problems of a document, gathered while it is read."""

    problems: list[Problem] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.problems)

    def wrong(self, pointer: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(pointer=pointer, message=message, hint=hint))

    def check(self) -> None:
        """Go no further with a document that is wrong.

        Raises:
            InvalidInput: with all problems that were found so far.
        """
        if self.problems:
            raise InvalidInput(problems=tuple(self.problems))


@dataclass(frozen=True, slots=True)
class At:
    """A place in a document, and the problems that what is wrong there is added to."""

    pointer: str
    problems: Problems

    def below(self, name: str | int) -> At:
        return At(f"{self.pointer}/{name}", self.problems)

    def wrong(self, message: str, hint: str = "") -> None:
        self.problems.wrong(self.pointer, message, hint)

    def known_keys(self, mapping: Mapping[Any, Any], names: Collection[str]) -> None:
        """Refuse every unknown key: a setting that is ignored is worse than one that is refused."""
        for key in mapping:
            if key not in names:
                hint = did_you_mean(key, names, otherwise=f"known are {', '.join(sorted(names))}")
                self.below(key).wrong("unknown key", hint)

    def is_of(self, value: object, kind: type, type_name: str) -> bool:
        """Return whether a value is of a type, and a problem if not; a truth value is not a number."""
        fits = isinstance(value, kind) and not (kind is not bool and isinstance(value, bool))
        if not fits:
            self.wrong(f"must be {type_name}, not {value!r}")
        return fits


def location_of(details: Any) -> list[str]:
    """The place of one of pydantic's errors; of a check of a whole model, that of the field which it names."""
    field = details.get("ctx", {}).get("field", "")
    return [str(part) for part in details["loc"] or (field.split("/") if field else ())]


def validated(
    model: type[_Model], fields: dict[str, Any], *, name: str = "", problem_of: Callable[[type[_Model], Any], Problem]
) -> _Model:
    """Return the definition that has these fields.

    Args:
        name: what it must be called; then the fields need not say so. Empty: what they say.
        problem_of: makes a problem of one of pydantic's errors.

    Raises:
        InvalidInput: with one problem for each wrong field. It repeats no value.
    """
    from pydantic import ValidationError

    if name:
        fields.setdefault("name", name)
        if fields["name"] != name:
            raise InvalidInput(problems=(another_name(name),))
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(problems=tuple(problem_of(model, each) for each in error.errors())) from None


def explain(details: Any, where: list[str], known_fields: Iterable[str]) -> Problem:
    """Return one of pydantic's errors in words that need no knowledge of Python.

    Args:
        where: its place in the document.
        known_fields: those that may be there.
    """
    pointer = "/".join(["", *where]) if where else ""
    hint = details.get("ctx", {}).get("hint", "")
    if details["type"] == "extra_forbidden":
        return Problem(pointer=pointer, message="unknown field", hint=did_you_mean(where[-1], known_fields))
    if details["type"] == "missing":
        return Problem(pointer=pointer, message="this field is required", hint=hint)
    message, wrong_value = message_of(details), details.get("input")
    # A URL is named by its check, or has a secret; so may a variable, and what should only name a secret.
    is_shown = isinstance(wrong_value, str | int | float | bool) and "://" not in str(wrong_value)
    if is_shown and where and where[0] != "environment_variables" and where[-1] != "secret":
        message += f", not {wrong_value!r}"
    if not hint and isinstance(wrong_value, bool) and details["type"] == "string_type":
        hint = f'in quotes it is one: "{str(wrong_value).lower()}"'
    return Problem(pointer=pointer, message=message, hint=hint)


def message_of(details: Any) -> str:
    """Return what one of pydantic's errors says, without the wrong value and in words that need no Python."""
    name, _, reason = str(details["type"]).partition("_")
    if name in _EXPECTED and reason in _WRONG_TYPE:
        return f"must be {_EXPECTED[name]}"
    if details["type"] == "string_pattern_mismatch":
        return f"must be {in_words(details['ctx']['pattern'])}"
    message = str(details["msg"]).removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    if message.startswith("should "):
        message = message.replace("should", "must", 1)
    return message[0].lower() + message[1:]
