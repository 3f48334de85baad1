"""What an attack is, and what it is played against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class NotPlayable(Exception):
    """A target has no place for this attack; the text says why."""


class Target(Protocol):
    """A running cluster with somebody who may submit jobs to it.

    Attributes:
        name: `embedded`, `node` (agents whose workers are users of their own) or `containers`.
        url: of the API.
        token: of the submitter.
        is_apart: whether workers run as another user than their agent, so that user code is held back from it.
        root: the folder that its services share, as they know it.
        inputs: a folder on this machine that its jobs may read, and nobody but the attacker's host writes.
        inputs_there: the same folder as its jobs know it.
    """

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def is_apart(self) -> bool: ...
    @property
    def root(self) -> str: ...
    @property
    def inputs(self) -> Path: ...
    @property
    def inputs_there(self) -> str: ...

    def rows_of(self, script: str, **settings: object) -> list[str]:
        """Submit a job with this entry script, wait for its end, and return its rows, whatever became of it: none if
        it was refused, has failed, or was canceled.

        Args:
            settings: fields of the job; by default its input is a folder with one small file, in one mini-batch.
        """
        ...


@dataclass(frozen=True, slots=True)
class Attack:
    """Something that must not succeed."""

    name: str
    play: Callable[[Target], str]
    """Returns what it got through to, in words; empty: it was held."""
    apart_only: bool = False
    """Where workers are the agent's user, nobody promises to hold it (see SECURITY.md)."""
    own_only: bool = False
    """Where people see the jobs of all, nobody promises to hold it (see docs/people.md)."""
    shared_only: bool = False
    """Where a cluster is of one user, on whose machine all of it runs, nobody promises to hold it."""
