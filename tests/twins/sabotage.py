"""How a twin breaks something, and how it says that the proof must notice."""

from __future__ import annotations

import gc
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from parallelrun_core import failpoints
from parallelrun_core.store import agent_queue, leader_queue, scripts


@contextmanager
def damage() -> Iterator[None]:
    """The proof that runs in here must fail, and by what it asserts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises((AssertionError, pytest.fail.Exception)) as found:
            yield
        traceback.clear_frames(found.tb)  # what it had open when it failed is closed now, not in another test
        gc.collect()


@contextmanager
def without(switch: str) -> Iterator[None]:
    """Switch one of the failpoints' mechanisms off in this process."""
    assert switch in failpoints.SWITCHES
    with patch.dict(failpoints._armed, {switch: "off"}):
        yield


@contextmanager
def altered(name: str, old: str, new: str) -> Iterator[None]:
    """Let this script be another for all queues that are made in here."""
    text = scripts.source(name)
    assert old in text, "the sabotage no longer matches the script"
    script = scripts.script

    def made(redis: Any, wanted: str) -> Any:
        return redis.register_script(text.replace(old, new)) if wanted == name else script(redis, wanted)

    with patch.object(agent_queue, "script", made), patch.object(leader_queue, "script", made):
        yield


def nothing(*_: Any, **__: Any) -> None:
    """Stands for a step that is left out."""


def always(answer: Any) -> Callable[..., Any]:
    """Stands for a step that doesn't look."""
    return lambda *_, **__: answer
