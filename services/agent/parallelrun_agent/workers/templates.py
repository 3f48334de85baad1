"""The templates of a node: which are started, and for how long they are kept.

The first worker of a key is started by itself. Some time after its script has begun, when it no longer delays anything,
a template is started beside it, and the key's next workers are forked. What goes wrong with a template costs no worker,
and its key is not tried again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from typing import Final

from parallelrun_agent.loop import EventLoop
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_agent.workers.template_process import ForkRequest, NotForked, TemplateKey, TemplateProcess
from parallelrun_core.service.telemetry import logger

log = logger()

_START_AFTER_S: Final = 2.0
_READY_WITHIN_S: Final = 60.0
_KEEP_S: Final = 120.0
_MOST: Final = 4
_MOST_GIVEN_UP: Final = 256


@dataclass
class _RunningTemplate:
    """A template that runs, and since when it was not used."""

    process: TemplateProcess
    used_at: float
    is_ready: bool = False


class WorkerTemplates:
    """Used by the agent's one thread only.

    Args:
        is_on: whether workers are forked at all.
    """

    def __init__(self, loop: EventLoop, orphans: Orphans, *, is_on: bool = True) -> None:
        self._loop = loop
        self._orphans = orphans
        self._is_on = is_on
        self._due: dict[TemplateKey, float] = {}
        """When to start a template of each key that has workers and none yet."""
        self._running: OrderedDict[TemplateKey, _RunningTemplate] = OrderedDict()
        """The one that was used last is at the end."""
        self._given_up: OrderedDict[TemplateKey, None] = OrderedDict()

    def fork(self, key: TemplateKey, request: ForkRequest) -> int:
        """Fork a worker; returns its process id, or -1 where it must be started by itself."""
        template = self._running.get(key)
        if template is None or not template.is_ready:
            return -1
        try:
            pid = template.process.fork(request)
        except NotForked as error:
            self._give_up(key, str(error))
            return -1
        template.used_at = time.monotonic()
        self._running.move_to_end(key)
        return pid

    def script_began(self, key: TemplateKey, now: float) -> None:
        """A worker of this key is through init(): the next ones may be forked."""
        if self._is_on and self._orphans.is_parent and key not in self._running and key not in self._given_up:
            self._due.setdefault(key, now + _START_AFTER_S)

    def poll(self, now: float, jobs: Container[str]) -> None:
        """Start what is due, and end what is no longer used, or belongs to a job that is none of these."""
        for key in [key for key in self._due if key.job_id and key.job_id not in jobs]:
            del self._due[key]
        for key in [key for key, due_at in self._due.items() if now >= due_at]:
            del self._due[key]
            self._start(key, now)
        for key, template in list(self._running.items()):
            if not template.is_ready and now >= template.used_at + _READY_WITHIN_S:
                self._give_up(key, "it is not ready in time")
            elif (key.job_id and key.job_id not in jobs) or now >= template.used_at + _KEEP_S:
                self._end(key)

    def wait_s(self, now: float) -> float:
        """Return in how many seconds, at most, `poll` has something to do; infinite: not before something happens."""
        return max(0.0, min(self._due.values(), default=float("inf")) - now)

    def close(self) -> None:
        """End all templates."""
        self._is_on = False
        self._due.clear()
        for key in list(self._running):
            self._end(key)

    def _start(self, key: TemplateKey, now: float) -> None:
        while len(self._running) >= _MOST:
            self._end(next(iter(self._running)))
        try:
            process = TemplateProcess.start(key, self._orphans.is_worker)
        except OSError as error:
            log.warning("template_not_started", error=str(error))
            return
        self._running[key] = _RunningTemplate(process, now)
        self._orphans.worker_started(process.pid)
        self._loop.add(process.channel.fileno(), partial(self._on_report, key))

    def _on_report(self, key: TemplateKey) -> None:
        template = self._running[key]
        if reason := template.process.report():
            self._give_up(key, reason)
        else:
            template.is_ready, template.used_at = True, time.monotonic()
            log.info("template_ready", pid=template.process.pid, script=key.entry_script)

    def _give_up(self, key: TemplateKey, reason: str) -> None:
        """End the template of this key, and start no other one."""
        log.warning("template_given_up", script=key.entry_script, reason=reason)
        self._given_up[key] = None
        while len(self._given_up) > _MOST_GIVEN_UP:
            self._given_up.popitem(last=False)
        self._end(key)

    def _end(self, key: TemplateKey) -> None:
        process = self._running.pop(key).process
        self._loop.remove(process.channel.fileno())
        process.close()
        self._orphans.worker_ended(process.pid)
