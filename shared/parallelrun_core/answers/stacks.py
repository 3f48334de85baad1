"""Stacks of the threads of a job's workers."""

from __future__ import annotations

from typing import Literal

from parallelrun_core.answers.answer import Answer, OpenEnum, Time

Doing = Literal["waits_for_work", "computes", "waits", "unknown"]


class StacksAsked(Answer, kw_only=True, frozen=True):
    """The nodes that work for a job were asked."""

    id: str
    """Nodes that have answered are in `GET /v1/jobs/{id}/stacks` with this id, after some seconds."""
    nodes: list[str]
    """The nodes that are expected to answer."""


class StackFrame(Answer, kw_only=True, frozen=True):
    """A call."""

    file: str
    """Relative to the job's code, if it is in there."""
    line: int = 0
    """0: unknown."""
    function: str = ""


class ThreadStack(Answer, kw_only=True, frozen=True):
    """A thread of a worker."""

    is_main: bool = False
    name: str = ""
    """Empty: not known."""
    frames: list[StackFrame] = []
    """The innermost call first. Those of the engine that lead to the script are left out, so a worker without work has
    none."""


class WorkerStacks(Answer, kw_only=True, frozen=True):
    """A worker."""

    process: str
    pid: int = 0
    doing: OpenEnum[Doing] = "unknown"
    """`waits`: for a disk, a lock, a clock, another process."""
    note: str = ""
    """A remark on the stacks: that the worker stays in one line, or why nothing is known."""
    threads: list[ThreadStack] = []
    """All that run Python, the main thread first."""


class NodeStacks(Answer, kw_only=True, frozen=True):
    """The last answer of one node."""

    id: str
    """Id of the request."""
    node: str
    at: Time = ""
    workers: list[WorkerStacks] = []
    left_out: int = 0
    """Workers beyond 64: ask for them by name."""


class StacksReport(Answer, kw_only=True, frozen=True):
    """The last answer of each node. None has answered anything yet, if there are no items."""

    items: list[NodeStacks]
