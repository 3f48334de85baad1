"""How a twin breaks something, and how it says that the proof must notice.

The product has no switch for any of this: a function of it is replaced, or a line of a script is another one, in the
process that asks for it. Services are started without a mechanism by `tests.twins.launch`.
"""

from __future__ import annotations

import gc
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from parallelrun_core.store import scripts


@contextmanager
def damage() -> Iterator[None]:
    """The proof that runs in here must fail, and by what it asserts."""
    import pytest  # services that are launched without a mechanism start quickly, too

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises((AssertionError, pytest.fail.Exception)) as found:
            yield
        traceback.clear_frames(found.tb)  # what it had open when it failed is closed now, not in another test
        gc.collect()


def nothing(*_: Any, **__: Any) -> None:
    """Stands for a step that is left out."""


def always(answer: Any) -> Callable[..., Any]:
    """Stands for a step that doesn't look."""
    return lambda *_, **__: answer


@contextmanager
def altered(script: str, old: str, new: str) -> Iterator[None]:
    """Let this script be another for all queues that are made in here.

    Raises:
        LookupError: it has no such text any more.
    """
    source = scripts.source
    if old not in source(script):
        raise LookupError(f"{script}.lua has no {old!r} that sabotage could replace")

    def read(name: str) -> str:
        return source(name).replace(old, new) if name == script else source(name)

    with patch.object(scripts, "source", read):
        yield


@contextmanager
def replaced(name: str, stand_in: Callable[..., Any]) -> Iterator[None]:
    """Let a function be another one: `package.module:function` or `package.module:Class.method`.

    Raises:
        LookupError: there is no such function any more.
    """
    module, _, path = name.partition(":")
    owner: Any = import_module(module)
    *outer, function = path.split(".")
    for each in outer:
        owner = _own(owner, each, name)
    if not callable(_own(owner, function, name)):
        raise LookupError(f"{name} is no function that sabotage could replace")
    with patch.object(owner, function, stand_in):
        yield


def _own(owner: Any, name: str, wanted: str) -> Any:
    if name not in vars(owner):  # what is inherited, too, would be somebody else's
        raise LookupError(f"there is no {wanted} that sabotage could replace")
    return getattr(owner, name)


class Line(NamedTuple):
    """A piece of a script, and what stands there without the mechanism."""

    script: str
    old: str
    new: str


class Step(NamedTuple):
    """A function, and what it does without the mechanism."""

    name: str
    stand_in: Callable[..., Any]


_DEADLINE: Final = Step("parallelrun_agent.policy.lease_clock:LeaseClock.is_valid", always(True))

MECHANISMS: Final[dict[str, tuple[Line | Step, ...]]] = {
    # The token of a commit, the end of a lost session, and the rule that the first decision wins.
    "commit.fence": (
        Line("turn", "held[i] == token", "true"),
        Line("turn", "mode ~= 'join' and not", "mode == 'leave' and not"),
        _DEADLINE,
        Step("parallelrun_core.decisions:Decided._is_late", always(False)),
    ),
    # The look whether a leader's turn still lasts, in all that it does on Redis.
    "lead.term": tuple(
        Line(script, "~= ARGV[1] then", "== '' then")
        for script in ("assign", "forget", "publish", "reap", "retire", "speculate", "transition")
    ),
    # The end that an agent puts to its workers before Redis lets others in.
    "lease.deadline": (_DEADLINE,),
    # The look whether the rows of an answer are in its part file.
    "commit.check_rows": (Step("parallelrun_agent.committer:Committer._with_rows", lambda committer, group: group),),
    # The end of what a dead worker has left behind outside its process group.
    "worker.end_orphans": (
        Step("parallelrun_agent.workers.orphans:Orphans.end", nothing),
        Step("parallelrun_agent.workers.leftovers:_is_left_behind", always(False)),
    ),
}


@contextmanager
def without(mechanism: str) -> Iterator[None]:
    """Do without this mechanism in this process, and in what it forks.

    Raises:
        LookupError: there is no such mechanism, or not all of its parts are where they were.
    """
    with ExitStack() as parts:
        for part in MECHANISMS[mechanism]:
            parts.enter_context(altered(*part) if isinstance(part, Line) else replaced(*part))
        yield
