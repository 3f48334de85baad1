"""Keeps the values of a job's environment variables and secrets out of what is reported about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, Final

import msgspec

from parallelrun_core.untrusted.sanitize import visible
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.outcome import Failure

MASK: Final = "***"
# Shorter ones, such as `1` or `INFO`, occur everywhere: masking them would garble the text and hide nothing.
_SHORTEST_SECRET: Final = 6
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def masked_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A job spec, or a pipeline's with those of its steps, as it may be shown."""
    if spec.get("type") == "pipeline" or _steps_of(spec):
        steps = {name: {**step, "job": masked_spec(step["job"])} for name, step in _steps_of(spec).items()}
        return {**spec, "steps": steps} if steps else {**spec}
    variables = spec.get("environment_variables")
    return {**spec, "environment_variables": dict.fromkeys(variables, MASK) if isinstance(variables, dict) else {}}


def _steps_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The steps, if this is the spec of a pipeline: a nested one need not say that it is one."""
    steps = spec.get("steps")
    return steps if isinstance(steps, dict) else {}


def _values_of(spec: Mapping[str, Any]) -> Iterator[str]:
    """The values of the environment variables of a job, or of all steps of a pipeline."""
    variables = spec.get("environment_variables")
    if isinstance(variables, dict):
        yield from map(str, variables.values())
    for step in _steps_of(spec).values():
        yield from _values_of(step["job"])


class Mask:
    """Masks the values of the environment variables of a job, or of a pipeline's steps, in texts that may repeat them.

    As they are, each line of those with several, and as Python, JSON and addresses write them (`repr`, escapes,
    `%20`), once or twice. Values of less than six characters are not masked, and no other form of them is (base64).
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.forms: list[str] = []
        """What is masked, the longest first, since one may be part of another."""
        self.add(_values_of(spec))

    def add(self, values: Iterable[str]) -> None:
        """Mask these, too: secrets, which only a node knows."""
        forms = {form for value in values for form in _forms(value) if len(form) >= _SHORTEST_SECRET}
        self.forms = sorted(forms.union(self.forms), key=len, reverse=True)

    def text(self, text: str) -> str:
        for form in self.forms:
            text = text.replace(form, MASK)
        return text

    def printable(self, text: str) -> str:
        """A text as it may be shown to people, whatever words are in it (see `visible`)."""
        return visible(self.text(text))

    def failure(self, failure: Failure) -> Failure:
        words = {name: self.printable(getattr(failure, name)) for name in ("message", "traceback")}
        return msgspec.structs.replace(failure, **words)

    def warning(self, warning: DataWarning) -> DataWarning:
        words = {name: self.printable(getattr(warning, name)) for name in ("file", "column", "what", "remedy")}
        return msgspec.structs.replace(warning, **words)


def _forms(value: str) -> Iterable[str]:
    """Return how a value may occur in a text: as it is, written by something, or written twice."""
    lines = [line.strip() for line in value.splitlines()]
    texts = {value, value.strip(), *(lines if len(lines) > 1 else [])}
    once = {form for text in texts if len(text) >= _SHORTEST_SECRET for form in _written(text)}
    return texts | once | {form for text in once for form in _written(text)}


def _written(text: str) -> set[str]:
    """Return how Python, JSON, our reports and addresses write a text."""
    plain = "".join(char if char in "'\"" else repr(char)[1:-1] for char in text)
    forms = {plain, plain.replace("'", "\\'"), json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    forms.add(visible(text))
    if not any("\ud800" <= char <= "\udfff" for char in text):
        whole = _in_address(text, _UNRESERVED)
        forms |= {whole, whole.replace("%20", "+"), _in_address(text, _UNRESERVED | set(b"/"))}
    return forms


def _in_address(text: str, plain: Set[int]) -> str:
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in text.encode())
