"""Masking of what clients have sent: without the values of environment variables, as in all answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.wire.masking import MASK

_VARIABLES: Final = ("environmentVariables", "environment_variables")


def masked(value: Any) -> Any:
    """A value with all that is in it, with a mask in place of the value of each environment variable."""
    if isinstance(value, list):
        return [masked(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: dict.fromkeys(each, MASK) if key in _VARIABLES and isinstance(each, dict) else masked(each)
        for key, each in value.items()
    }


def check_not_masked(sent: Any) -> None:
    """Make sure that nothing comes back that was masked in an answer: a script would take the mask for the value.

    Raises:
        InvalidInput: something does.
    """
    for name in _masked_names(sent):
        hint = "answers don't have the values of environment variables: set it again"
        raise InvalidInput.at(f"/environment_variables/{name[:80]}", "its value was left out of an answer", hint)


def _masked_names(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _masked_names(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in _VARIABLES and isinstance(each, dict):
                yield from (str(name) for name, text in each.items() if text == MASK)
            else:
                yield from _masked_names(each)
