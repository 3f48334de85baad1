"""Checks this node when it is asked to: what `parallelrun doctor` checks on its own machine, and what jobs are to read.

A thread does it, as a volume or a store may not answer; nobody waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from parallelrun_core import checks
from parallelrun_core.answers.nodes import NodeCheck
from parallelrun_core.checks.bounded import findings
from parallelrun_core.service.threads import started_thread
from parallelrun_core.store.nodes import NodeCheckRequest
from parallelrun_core.wire.finding import Finding, Level, Place

_KEPT_S: Final = 60.0
"""How long an answer is told: as long as a request stands."""
_MOST_SAID: Final = 300


class NodeChecks:
    """Answers requests, one at a time. What comes meanwhile waits until it is asked for again.

    Args:
        root: the folder that all services share.
    """

    def __init__(self, root: Path) -> None:
        self._place = Place(root=root)
        self._asked = ""
        self._thread: threading.Thread | None = None
        self._answer: tuple[float, NodeCheck] | None = None

    @property
    def answer(self) -> NodeCheck | None:
        """Return the answer to the last request, if it isn't old."""
        at, answer = self._answer or (0.0, None)
        return answer if answer is not None and time.monotonic() - at < _KEPT_S else None

    def ask(self, request: NodeCheckRequest) -> None:
        """Begin to answer a request that is new."""
        if request.id != self._asked and (self._thread is None or not self._thread.is_alive()):
            self._asked = request.id
            with suppress(OSError):  # who has asked will hear that there was no answer
                self._thread = started_thread("checks", self._run, request)

    def _run(self, request: NodeCheckRequest) -> None:
        node_findings = list(map(_shortened, (*_troubles(self._place), *_readable(request.paths, self._place))))
        if request.id == self._asked:
            self._answer = time.monotonic(), NodeCheck(id=request.id, findings=node_findings)


def _troubles(place: Place) -> Iterator[Finding]:
    """Only what is to be mended: the rest is the same on most nodes."""
    for of_subject in checks.subjects_in(checks).values():
        for check in of_subject:
            yield from (each for each in findings(check, place) if each.level is not Level.OK)


def _readable(paths: list[str], place: Place) -> Iterator[Finding]:
    for path in paths:
        yield from findings(partial(_read, path), place, name=path)


def _read(path: str, _: Place) -> list[Finding]:
    from parallelrun_core.checks.stores import readable

    return [readable("input", path)]


def _shortened(finding: Finding) -> Finding:
    return Finding(finding.level, finding.what[:_MOST_SAID], finding.todo[:_MOST_SAID])
