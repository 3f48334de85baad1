"""How a twin breaks a mechanism, and how it says that the proof must notice.

The product has no switch for any of this: a function of it, or a line of a script, is replaced in the process that asks
for it. `tests.twins.launch` starts services without a mechanism.
"""

from __future__ import annotations

import gc
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, NamedTuple
from unittest.mock import patch

from parallelrun_core.store import script_texts


@contextmanager
def expect_failure() -> Iterator[None]:
    """The proof that runs inside must fail, and by an assertion of its own: one that runs out of time shows nothing."""
    import pytest  # here, so that services which are launched without a mechanism start quickly

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises((AssertionError, pytest.fail.Exception)) as found:
            yield
        if "pytest-timeout" in str(found.value):
            raise TimeoutError("the proof ran out of time before it noticed anything") from found.value
        traceback.clear_frames(found.tb)  # what it had open when it failed is closed now, and not during another test
        gc.collect()


def nothing(*_: Any, **__: Any) -> None:
    """Replaces a step that is left out."""


async def nothing_later(*_: Any, **__: Any) -> None:
    """Replaces a step that is left out, and for which others would wait."""


def always(answer: Any) -> Callable[..., Any]:
    """Replaces a check, whose answer is always the same then."""
    return lambda *_, **__: answer


@contextmanager
def altered(script: str, old: str, new: str) -> Iterator[None]:
    """Replace text of this script for all queues that are created inside.

    Raises:
        LookupError: it no longer has such text.
    """
    source = script_texts.source
    if old not in source(script):
        raise LookupError(f"{script}.lua has no {old!r} that sabotage could replace")

    def read(name: str) -> str:
        return source(name).replace(old, new) if name == script else source(name)

    with patch.object(script_texts, "source", read):
        yield


@contextmanager
def replaced(name: str, stand_in: Callable[..., Any]) -> Iterator[None]:
    """Replace a function: `package.module:function` or `package.module:Class.method`.

    Raises:
        LookupError: there is no longer such a function.
    """
    module, _, path = name.partition(":")
    owner: Any = import_module(module)
    *outer, function = path.split(".")
    for each in outer:
        owner = _own(owner, each, name)
    if not callable(_own(owner, function, name)):
        raise LookupError(f"{name} is not a function that sabotage could replace")
    with patch.object(owner, function, stand_in):
        yield


def _own(owner: Any, name: str, wanted: str) -> Any:
    if name not in vars(owner):  # what is inherited belongs to another class
        raise LookupError(f"there is no {wanted} that sabotage could replace")
    return getattr(owner, name)


class Line(NamedTuple):
    """A piece of a script, and what it is without the mechanism."""

    script: str
    old: str
    new: str


class Step(NamedTuple):
    """A function, and what it does without the mechanism."""

    name: str
    stand_in: Callable[..., Any]


@contextmanager
def without(mechanism: str) -> Iterator[None]:
    """Disable this mechanism in this process, and in those that it forks.

    Raises:
        LookupError: there is no such mechanism, or not all of its parts are where they were.
    """
    from tests.twins.mechanisms import MECHANISMS

    with ExitStack() as parts:
        for part in MECHANISMS[mechanism]:
            parts.enter_context(altered(*part) if isinstance(part, Line) else replaced(*part))
        yield
