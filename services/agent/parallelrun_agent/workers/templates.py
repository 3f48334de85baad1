"""The templates of a node: which are started, and for how long they are kept.

Before a key's first worker, its template is started, which takes about as long as that worker would; it and the next
ones are forked. What goes wrong with a template costs no worker: it is started by itself then, as are all of the key's
from then on.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from parallelrun_agent.loop import EventLoop
from parallelrun_agent.node.memory import available_bytes
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_agent.workers.template_process import (
    ForkRequest,
    NotForked,
    NotInTime,
    Outdated,
    TemplateKey,
    TemplateProcess,
)
from parallelrun_core.service.telemetry import logger

log = logger()

_READY_WITHIN_S: Final = 60.0
_KEEP_S: Final = 120.0
_KEEP_UNUSED_S: Final = 10.0
"""One that has forked nothing yet makes room for another only after so long: its workers are about to come."""
_PAUSE_S: Final = 10.0
"""After one has not answered in time, nothing is forked for so long: others may hang as well, and leases be lost."""
_MOST_TEMPLATES: Final = 4
_MOST_GIVEN_UP: Final = 256
_LEAST_MEMORY: Final = 1 << 30
"""Bytes that must be free for one more: it needs a part of that, and the workers come first."""


@dataclass
class _RunningTemplate:
    """A template that runs, and since when it was not used."""

    process: TemplateProcess
    used_at: float
    was_begun: bool = False
    """True for one whose script wasn't known when it was started."""
    is_ready: bool = False
    has_forked: bool = False

    def may_make_room(self, now: float) -> bool:
        """Return whether it may be ended for another one."""
        return self.is_ready and (self.has_forked or now >= self.used_at + _KEEP_UNUSED_S)


class WorkerTemplates:
    """The templates of a node, by what their workers have in common. For the agent's one thread alone.

    Args:
        on_change: called when workers that have waited for a template may be started.
        is_on: whether workers are forked at all.
    """

    def __init__(
        self, loop: EventLoop, orphans: Orphans, *, on_change: Callable[[], None] = lambda: None, is_on: bool = True
    ) -> None:
        self._loop = loop
        self._orphans = orphans
        self._on_change = on_change
        self._is_on = is_on
        self._running: OrderedDict[TemplateKey, _RunningTemplate] = OrderedDict()
        """The one that was used last is at the end."""
        self._given_up: OrderedDict[int, str] = OrderedDict()
        """By the hash of a key, which has the values of secrets: the job whose own it was; empty: nobody's."""
        self._fork_after = 0.0
        self._has_ended = False
        self._lacks_memory = False

    def is_awaited(self, key: TemplateKey, now: float) -> bool:
        """Return whether workers of this key are better started in a moment: there will be a template to fork.

        One is started if there is none, so this is asked only for workers that have a slot.
        """
        if not self._is_on or not self._orphans.is_parent or hash(key) in self._given_up:
            return False
        if key not in self._running:
            self._start(key, now)
        template = self._running.get(key)
        return template is not None and not template.is_ready

    def begin(self, key: TemplateKey, preload: Sequence[str], now: float) -> None:
        """Start a template for a script that isn't known yet.

        Args:
            key: the `before_script()` of that script's key.
            preload: modules that it begins with.
        """
        if self._is_on and self._orphans.is_parent:
            self._start(key, now, preload)

    def fork(self, key: TemplateKey, request: ForkRequest) -> int:
        """Fork a worker; returns its process id, or -1 where it must be started by itself."""
        template = self._running.get(key)
        if template is None or not template.is_ready or time.monotonic() < self._fork_after:
            return -1
        try:
            pid = template.process.fork(request)
        except Outdated as error:
            log.info("template_outdated", script=key.entry_script, reason=str(error))
            self._end(key)
            return -1
        except NotForked as error:
            if isinstance(error, NotInTime):
                self._fork_after = time.monotonic() + _PAUSE_S
            self._give_up(key, str(error))
            return -1
        template.used_at, template.has_forked = time.monotonic(), True
        self._running.move_to_end(key)
        return pid

    def end_unused(self, now: float, jobs: Container[str]) -> bool:
        """End templates that nobody has used for a while, are not ready in time, or belong to a job that has ended.

        Args:
            now: on the monotonic clock.
            jobs: the ids of those that this node works for.

        Returns:
            whether a template has ended since the last call: processes that its imports have begun may be left.
        """
        for key, template in list(self._running.items()):
            if key.job_id and key.job_id not in jobs:
                self._end(key)
            elif key.entry_script and not template.is_ready and now >= template.used_at + _READY_WITHIN_S:
                self._give_up(key, "it is not ready in time")
            elif now >= template.used_at + _KEEP_S:
                self._end(key)
        for key_hash, job_id in list(self._given_up.items()):
            if job_id and job_id not in jobs:
                del self._given_up[key_hash]
        has_ended, self._has_ended = self._has_ended, False
        return has_ended

    def close(self) -> None:
        """End all templates."""
        self._is_on = False
        for key in list(self._running):
            self._end(key)

    def _start(self, key: TemplateKey, now: float, preload: Sequence[str] = ()) -> None:
        if (begun := self._running.pop(key.before_script(), None)) is not None:
            self._loop.remove(begun.process.channel.fileno())
            begun.process.tell_script(key)
            self._watch(key, _RunningTemplate(begun.process, now, was_begun=True))
            return
        available, lacked_memory = available_bytes(), self._lacks_memory
        self._lacks_memory = available is not None and available < _LEAST_MEMORY
        if self._lacks_memory:
            if not lacked_memory:  # it is asked many times a second
                log.info("template_not_started", script=key.entry_script, available_bytes=available)
            return
        while len(self._running) >= _MOST_TEMPLATES:
            unused = next((each for each, template in self._running.items() if template.may_make_room(now)), None)
            if unused is None:  # workers wait for each of them, or are about to be forked
                return
            self._end(unused)
        try:
            process = TemplateProcess.start(key, self._orphans.is_worker, preload)
        except OSError as error:
            log.warning("template_not_started", error=str(error))
            return
        self._orphans.worker_started(process.pid)
        self._watch(key, _RunningTemplate(process, now, was_begun=bool(preload)))

    def _watch(self, key: TemplateKey, template: _RunningTemplate) -> None:
        self._running[key] = template
        self._loop.add(template.process.channel.fileno(), partial(self._on_report, key))

    def _on_report(self, key: TemplateKey) -> None:
        template = self._running[key]
        reason = template.process.report() or ("it says more than it may" if template.is_ready else "")
        if reason and template.was_begun and not template.is_ready:
            log.info("template_unsuited", script=key.entry_script, reason=reason)
            self._end(key)  # the next worker asks for another one
            self._on_change()
        elif reason:
            self._give_up(key, reason)
        else:
            template.is_ready, template.used_at = True, time.monotonic()
            log.info("template_ready", pid=template.process.pid, script=key.entry_script)
            self._on_change()

    def _give_up(self, key: TemplateKey, reason: str) -> None:
        """End the template of this key, and start no other one."""
        log.warning("template_given_up", script=key.entry_script, reason=reason)
        self._given_up[hash(key)] = key.job_id
        while len(self._given_up) > _MOST_GIVEN_UP:
            self._given_up.popitem(last=False)
        self._end(key)
        self._on_change()

    def _end(self, key: TemplateKey) -> None:
        process = self._running.pop(key).process
        self._loop.remove(process.channel.fileno())
        process.close()
        self._orphans.worker_ended(process.pid)
        self._has_ended = True
