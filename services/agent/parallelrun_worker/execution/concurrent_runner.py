"""A runner whose mini-batches wait at the same time: for an HTTP API, a database, or an engine that batches by itself.

Each begins as soon as it is read, and answers go out in the order in which they come in. There is one thread for all
but the user's own run(): reading a mini-batch's data, making rows and writing them never meet another one's.

What a try uses of the CPU, of memory and of input can't be told apart from its neighbours', so it is unknown.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import zlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from parallelrun_worker import frames
from parallelrun_worker.execution.deadlines import Deadlines, MiniBatchRun
from parallelrun_worker.execution.failures import NoRoom, RunTimeout
from parallelrun_worker.execution.runner import Runner
from parallelrun_worker.execution.user_script import UserScript
from parallelrun_worker.mini_batches.mini_batch import Loader, MiniBatch, of_paths
from parallelrun_worker.rows import Rendered
from parallelrun_worker.script_api.permits import WAITED, Stopwatch

_ALIVE_S = 1.0
_GATHER_S = 0.01
"""How long an answer waits for others while there is enough to do."""
_UNKNOWN_USE = frames.pack_use(frames.Use())
_UNKNOWN_S = -1.0


class _Stored(NamedTuple):
    """An answer for a mini-batch that is done, and its rows, which have no place in the part file yet."""

    mini_batch: int
    data: bytes
    crc: int
    items: int
    rows: int
    line_breaks: int
    shortened: int
    run_s: float

    def frame(self, offset: int) -> bytes:
        """Return the frame that says where the rows are."""
        return frames.pack_result(
            frames.DONE, _UNKNOWN_USE, mini_batch=self.mini_batch, offset=offset, length=len(self.data), crc=self.crc,
            items=self.items, rows=self.rows, line_breaks=self.line_breaks, shortened=self.shortened,
            run_s=self.run_s, process_s=_UNKNOWN_S,
        )  # fmt: skip


class ConcurrentRunner(Runner):
    """Serves one agent as any runner does, with up to `in_flight` mini-batches at once."""

    _call: Callable[[UserScript, int, MiniBatch], Awaitable[object]]

    def main(self, config: frames.WorkerConfig) -> int:
        self._config = config
        self._most = config.in_flight
        self._answers: list[bytes | _Stored] = []
        self._problem: BaseException | None = None
        self._sending: asyncio.TimerHandle | None = None
        self._events = asyncio.new_event_loop()
        asyncio.set_event_loop(self._events)
        self._deadlines = Deadlines(self._events, config.run_s, self._give_up)
        try:
            return super().main(config)
        finally:
            self._events.close()

    def _import(self, config: frames.WorkerConfig) -> UserScript:
        enqueues = config.in_flight_by == "streaming"
        script = UserScript(config.code, config.entry_script, config.job_id, events=self._events, enqueues=enqueues)
        if config.uploaded:
            raise ValueError(
                "Several mini-batches in flight can't write files for outputs in stores: nobody could tell whose they "
                "are. Return rows, or leave mini_batches_in_flight at 1."
            )
        if enqueues:
            from parallelrun_worker.execution.streaming import Streaming

            self._call = Streaming(script, self._events).run
        elif script.is_async:
            self._call = _awaited
        elif config.in_flight_by == "threads":
            from parallelrun_worker.execution.run_threads import RunThreads

            self._call = RunThreads(self._events, self._most).run
        else:
            raise TypeError(
                "run() is an ordinary function, and mini_batches_in_flight asks for several at once: write "
                "`async def run(mini_batch)`, or set in_flight: threads."
            )
        return script

    def _serve(self, script: UserScript) -> None:
        self._events.run_until_complete(self._serve_all(script))

    async def _serve_all(self, script: UserScript) -> None:
        os.set_blocking(self._control, False)  # the agent may take back what has woken us
        self._is_to_end = asyncio.Event()
        self._script = script
        self._tries: set[asyncio.Task[Any]] = set()
        self._loaders = [self._loader]
        self._loader_count = 1
        self._is_watched = False
        self._on_tickets()
        alive = self._events.create_task(self._show_life())
        await self._is_to_end.wait()
        while self._tries:
            await asyncio.wait(self._tries)
        alive.cancel()
        if self._problem is not None:
            raise self._problem
        self._send_answers()

    async def _show_life(self) -> None:
        """Send a sign of life now and then while something runs: the agent ends a worker whose loop is blocked."""
        while True:
            await asyncio.sleep(_ALIVE_S)
            if self._tries:
                self._send(frames.ALIVE, b"")

    def _on_tickets(self) -> None:
        """Begin what was delivered, as far as there is room."""
        while len(self._tries) < self._most:
            try:
                ticket = os.read(self._control, frames.TICKET.size)
            except BlockingIOError:
                self._watch(is_watched=True)
                return
            if not ticket:
                self._is_to_end.set()
                break
            self._on_ticket(*frames.TICKET.unpack(ticket))
        self._watch(is_watched=False)

    def _on_ticket(self, kind: int, mini_batch: int, position: int, length: int) -> None:
        if kind == frames.FLUSH:
            self._log.flush()
        elif kind == frames.WIDTH:
            self._most = mini_batch
        else:
            place = frames.ring_place(position)
            payload = self._ring[place : place + length]
            frames.POSITION.pack_into(self._ring, 0, position + length)
            task = self._events.create_task(self._try(kind, mini_batch, payload))
            self._tries.add(task)
            task.add_done_callback(self._on_end)

    def _watch(self, *, is_watched: bool) -> None:
        """Have the event loop call `_on_tickets` when tickets come, or not."""
        if is_watched != self._is_watched:
            self._is_watched = is_watched
            if is_watched:
                self._events.add_reader(self._control, self._on_tickets)
            else:
                self._events.remove_reader(self._control)

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        """Begin the next one, which is there already if the agent knows how short they are, and then answer."""
        if task not in self._tries:  # it was given up
            return
        self._tries.discard(task)
        if not self._is_to_end.is_set():
            self._on_tickets()
        if len(self._tries) < self._most:
            self._send_answers()
        elif self._answers and self._sending is None:
            self._sending = self._events.call_later(_GATHER_S, self._send_answers)
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            self._end_by(error)

    def _end_by(self, error: BaseException) -> None:
        """End the worker: this is an error of our own."""
        self._problem = error
        self._is_to_end.set()

    def _answer(self, frame: bytes) -> None:
        """Keep an answer for `_send_answers`: one write, and one look of the agent, for all of a moment."""
        self._answers.append(frame)

    def _send_answers(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        if not self._answers:
            return
        self._exit_if_forked()
        answers, self._answers = self._answers, []
        try:
            offset, problem = self._write_rows(b"".join(each.data for each in answers if isinstance(each, _Stored))), ""
        except NoRoom as error:
            offset, problem = 0, str(error)
        except OSError as error:
            self._end_by(error)
            return
        framed = []
        for each in answers:
            if isinstance(each, bytes):
                framed.append(each)
            elif problem:
                payload = frames.MINI_BATCH.pack(each.mini_batch) + problem.encode(errors="replace")
                framed.append(frames.HEAD.pack(frames.NOT_STORED, len(payload)) + payload)
            else:
                framed.append(each.frame(offset))
                offset += len(each.data)
        super()._answer(b"".join(framed))

    def _send(self, kind: int, payload: bytes) -> None:
        """Send a frame behind the answers that were given before it."""
        self._send_answers()
        super()._send(kind, payload)

    async def _try(self, kind: int, mini_batch: int, payload: bytes) -> None:
        """Run a mini-batch, from its delivery to its answer."""
        run = MiniBatchRun(mini_batch, asyncio.current_task(), Stopwatch())
        WAITED.set(run.stopwatch)  # a task has its own context
        loaded, loader = None, None
        try:
            if kind == frames.PATHS:
                loaded = of_paths(payload)
            else:
                loader = self._loader = self._loaders.pop() if self._loaders else self._new_loader()
                loaded = self._fetch(kind, mini_batch, payload, run.began)
                run.began = time.perf_counter()
                if loaded.copies is None:
                    self._loaders.append(loader)
                    loader = None
            run.items = loaded.items
            if self._warnings:  # those of other mini-batches may come before run() has returned
                self._warn(mini_batch)
            returned = await self._limited(run, loaded) if run.items else []
            if run.is_given_up:
                return
            run_s = time.perf_counter() - run.began - self._waited(run)
            rendered = self._rendered(returned, run.items)
            self._exit_if_forked()
        except NoRoom as error:
            self._give_back(mini_batch, error, 0)
            return
        except BaseException as error:  # sys.exit() in run() fails the mini-batch, not the worker
            self._has_failed(run, error)
            return
        finally:
            if loaded is not None and loaded.copies is not None:
                loaded.copies.remove()
            if loader is not None:
                self._loaders.append(loader)
        self._store(mini_batch, rendered, run.items, run_s)

    async def _limited(self, run: MiniBatchRun, loaded: MiniBatch) -> object:
        """Call the user's function, which is canceled alone when it takes too long.

        Raises:
            RunTimeout: it was canceled.
        """
        self._deadlines.begin(run)
        try:
            return await self._call(self._script, run.mini_batch, loaded)
        finally:
            self._deadlines.end(run)
            if run.canceled_at and not run.is_given_up:
                raise self._timeout() from None

    def _timeout(self) -> RunTimeout:
        return RunTimeout(f"run() took longer than run_invocation_timeout ({self._config.run_s:g} s).")

    def _has_failed(self, run: MiniBatchRun, error: BaseException) -> None:
        if not run.is_given_up:
            run_s = time.perf_counter() - run.began - self._waited(run)
            self._failed(error, 0, mini_batch=run.mini_batch, items=run.items, run_s=run_s, process_s=_UNKNOWN_S)

    def _give_up(self, run: MiniBatchRun) -> None:
        """Answer for a mini-batch whose run() goes on though it was canceled, and leave that to itself."""
        self._has_failed(run, self._timeout())
        run.is_given_up = True
        self._on_end(run.task)

    def _store(self, mini_batch: int, rendered: Rendered, items: int, run_s: float) -> None:
        """Answer, with the rows of a mini-batch, which are written with those of others."""
        data, rows, line_breaks, shortened = rendered
        crc = zlib.crc32(data)
        if self._part < 0:
            data, crc = b"", 0
        if self._warnings or self._lost:
            self._send_news(mini_batch)
        self._answers.append(_Stored(mini_batch, data, crc, items, rows, line_breaks, shortened, run_s))
        self._log_done(mini_batch, run_s, rows, items)

    def _waited(self, run: MiniBatchRun) -> float:
        """Tell the agent for how long a mini-batch has waited for permits, if it has asked for any; returns that."""
        limits = run.stopwatch.by_limit()
        if not limits:
            return 0.0
        waited_s = run.stopwatch.seconds()
        waits = json.dumps({"waited_s": waited_s, "limits": limits}).encode()
        self._answer(frames.HEAD.pack(frames.WAITED, frames.MINI_BATCH.size + len(waits)))
        self._answer(frames.MINI_BATCH.pack(run.mini_batch) + waits)
        return waited_s

    def _new_loader(self) -> Loader:
        """Return one with a folder of its own for copies: those of other mini-batches are still in use."""
        config, copies = self._config, f".downloaded-{self._loader_count}"
        self._loader_count += 1
        return Loader(config.inputs, config.schemas, config.workers, self._warnings, copies)

    def _used(self, tickets: int) -> bytes:
        return _UNKNOWN_USE


async def _awaited(script: UserScript, mini_batch: int, loaded: MiniBatch) -> object:
    return await script.run(mini_batch, loaded)  # type: ignore[misc]
