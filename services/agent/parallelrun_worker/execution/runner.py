"""The worker's life: configuration, init(), mini-batches first in first out, shutdown()."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import zlib
from typing import TYPE_CHECKING

from parallelrun_worker import frames
from parallelrun_worker.diagnostics.meter import Meter
from parallelrun_worker.diagnostics.prints import PrintMarks
from parallelrun_worker.diagnostics.profiling import Profiler
from parallelrun_worker.execution.failures import NO_ROOM, NoRoom, Unreadable, Unwritable, describe
from parallelrun_worker.execution.user_script import UserScript
from parallelrun_worker.log_files import DISK_TROUBLE, LineFile
from parallelrun_worker.mini_batches.mini_batch import Loader, MiniBatch, of_paths
from parallelrun_worker.outputs import Outputs
from parallelrun_worker.rows import Rendered, RowRenderer, renderer
from parallelrun_worker.rows.returned import as_rows
from parallelrun_worker.rows.returned_columns import ReturnedColumns
from parallelrun_worker.rows.returned_objects import ReturnedObjects
from parallelrun_worker.script_api.script import ItemError
from parallelrun_worker.tables.data_warnings import DataWarnings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from mmap import mmap

    from parallelrun_worker.rows.kept_rows import Patch

_AT_ONCE_S = 50e-6
"""When a mini-batch follows the last one so soon, the CPU time at its beginning is that at the last one's end: it costs
much to ask for, and what threads in the background have used meanwhile is too little to matter."""


class Runner:
    """Serves one agent over a ring of payloads and two pipes, and writes rows to a file."""

    def __init__(self, ring: mmap, control: int, results: int, part: int, prints: PrintMarks | None = None) -> None:
        self._ring = ring
        self._control = control
        self._results = results
        self._part = part
        self._end = 0
        self._code = ""
        self._masked: Sequence[str] = ()
        self._pid = os.getpid()
        self._run_ended = self._cpu_ended = 0.0
        """Of the last mini-batch that was done: the time when run() returned, and the CPU time before the answer."""
        self._meter = Meter()
        self._warnings = DataWarnings()
        self._patch: Patch | None = None
        """Makes the rows of a mini-batch of which only some items were run."""
        self._lost = b""
        """Items of the mini-batch that have failed alone, as a frame has them."""
        self._prints = prints or PrintMarks("")
        self._log: LineFile
        self._profiler: Profiler | None = None
        self._outputs: Outputs | None = None
        self._rows: RowRenderer

    def main(self, config: frames.WorkerConfig) -> int:
        """Work until the agent asks for the end; returns the exit code."""
        sys.argv = config.argv
        self._code = config.code
        self._masked = config.masked
        self._log = LineFile(config.log, level=config.logging_level, errors=config.errors)
        self._log_loaded = self._log.often("INFO", "Mini-batch %d: loaded %d items.")
        self._log_done = self._log.often("INFO", "Mini-batch %d: run() took %.3f s, %d rows of %d items, done.")
        if config.profiling_module:
            self._profiler = Profiler(
                config.profiling_module, os.path.splitext(config.log)[0] + ".profile", config.code
            )
        began = time.perf_counter()
        self._loader = Loader(config.inputs, config.schemas, config.workers, self._warnings)
        try:
            self._loader.prepare()
            script = self._begin(config)
        except BaseException as error:  # sys.exit() in the user's module is a failure, too
            self._send(frames.INIT_FAILED, self._described(error))
            self._log.write("ERROR", f"init() failed: {type(error).__name__}.", at_once=True)
            return 1
        took_s = time.perf_counter() - began
        self._send(frames.READY, frames.SECONDS.pack(took_s))
        self._log.write("INFO", f"init() is done in {took_s:.3f} s.", at_once=True)
        self._meter.begin()
        self._serve(script)
        return self._shut_down(script)

    def _serve(self, script: UserScript) -> None:
        """Run what is delivered, one mini-batch after another, until the agent asks for the end."""
        unpack, ring_place, position_into = frames.TICKET.unpack, frames.ring_place, frames.POSITION.pack_into
        ring, tickets = self._ring, 0
        while ticket := self._next():
            tickets += 1
            kind, mini_batch, position, length = unpack(ticket)
            place = ring_place(position)
            self._run(script, kind, mini_batch, ring[place : place + length], tickets)
            # Only now, after a system call or two: no processor puts this before the copy.
            position_into(ring, 0, position + length)

    def _next(self) -> bytes:
        """The ticket of the next delivery; empty when the agent asks for the end."""
        while ticket := os.read(self._control, frames.TICKET.size):
            if ticket[0] != frames.FLUSH:
                break
            self._meter.own_bytes += len(ticket)
            self._log.flush()
            self._prints.flush()
        return ticket

    def _begin(self, config: frames.WorkerConfig) -> UserScript:
        self._log.write("INFO", f"Importing {config.entry_script}, then init().", at_once=True)
        first_columns = os.path.join(os.path.dirname(config.inputs), "schema.returned.json")
        by_name = config.output.get("columns") == "name"
        columns = ReturnedColumns(first_columns, self._warnings, by_name=by_name)
        objects = ReturnedObjects(self._warnings, refuses=config.output.get("objects") == "refuse")
        self._rows = renderer(config.output, columns, objects, self._warnings)
        script = self._import(config)
        if self._profiler is not None:
            script.under(self._profiler.call)
        if script.init is not None:
            script.init()
        if config.uploaded:
            self._outputs = Outputs(config.uploaded, config.aside)
            self._outputs.begin()
        return script

    def _import(self, config: frames.WorkerConfig) -> UserScript:
        return UserScript(config.code, config.entry_script, config.job_id)

    def _run(self, script: UserScript, kind: int, mini_batch: int, payload: bytes, tickets: int) -> None:
        self._prints.mini_batch = mini_batch
        began = time.perf_counter()
        cpu_began = self._cpu_ended if began - self._run_ended < _AT_ONCE_S else time.process_time()
        if began >= self._log.due_at:  # a long one should be seen in the log while it runs
            self._log.write("INFO", f"Mini-batch {mini_batch} is picked.")
            self._log.flush_regularly()
        loaded, items = None, 0
        try:
            if kind == frames.PATHS:
                loaded = of_paths(payload)
            else:
                loaded = self._fetch(kind, mini_batch, payload, began)
                began = time.perf_counter()
            items = loaded.items
            returned = self._run_script(script, kind, mini_batch, loaded) if items else []
            run_ended = time.perf_counter()
            data, rows, line_breaks, shortened = self._rendered(returned, items)
            self._exit_if_forked()  # from here to the answer, nothing of the user's runs
            if self._outputs is not None:
                self._set_aside(self._outputs, mini_batch)
        except NoRoom as error:
            self._give_back(mini_batch, error, tickets)
            return
        except BaseException as error:  # sys.exit() in run() fails the mini-batch, not the worker
            run_s, process_s = time.perf_counter() - began, time.process_time() - cpu_began
            self._failed(error, tickets, mini_batch=mini_batch, items=items, run_s=run_s, process_s=process_s)
            return
        finally:
            if loaded is not None and loaded.copies is not None:
                loaded.copies.remove()  # it has been run
        crc, run_s = zlib.crc32(data), run_ended - began
        if self._part < 0:
            data, crc = b"", 0
        try:
            offset = self._write_rows(data)
        except NoRoom as error:
            self._give_back(mini_batch, error, tickets)
            return
        meter = self._meter
        use = meter.unmeasured if run_ended < meter.due_at else meter.measure(tickets)
        cpu_ended = time.process_time()
        answer = frames.pack_result(
            frames.DONE, use, mini_batch=mini_batch, offset=offset, length=len(data), crc=crc, items=items, rows=rows,
            line_breaks=line_breaks, shortened=shortened, run_s=run_s, process_s=cpu_ended - cpu_began,
        )  # fmt: skip
        if self._warnings or self._lost:
            self._send_news(mini_batch)
        _write_all(self._results, answer)
        self._run_ended, self._cpu_ended = run_ended, cpu_ended
        self._log_done(mini_batch, run_s, rows, items)

    def _rendered(self, returned: object, items: int) -> Rendered:
        """Render the rows; whoever renders may freeze columns for other workers."""
        if type(returned) is not list:
            returned = as_rows(returned)
        if ItemError.is_used:
            returned = self._separated(returned, items)
        try:
            if self._patch is not None:
                patch, self._patch = self._patch, None
                return patch.render(self._rows)
            return self._rows.render(returned)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise NoRoom(error) from error
            raise

    def _separated(self, returned: object, items: int) -> object:
        """Take the items that have failed out of what run() has returned."""
        from parallelrun_worker.execution import item_errors  # hardly any script needs it

        good, errors = item_errors.separate(returned, items)
        self._lost = item_errors.packed(errors, self._masked) if errors else b""
        return good

    def _send_news(self, mini_batch: int) -> None:
        """Tell the agent, before the answer for a mini-batch, of warnings about its data and of items that failed."""
        if self._warnings:
            self._warn(mini_batch)
        if self._lost:
            self._send(frames.ITEMS_FAILED, frames.MINI_BATCH.pack(mini_batch) + self._lost)
            self._lost = b""

    def _run_script(self, script: UserScript, kind: int, mini_batch: int, loaded: MiniBatch) -> object:
        """Call run(), once or for each part of a mini-batch whose items are run apart."""
        if kind not in frames.OF_APART:
            return script.run(mini_batch, loaded)
        from parallelrun_worker.execution.isolation import ApartRun  # hardly any job needs it

        rows = None if self._part < 0 else self._rows
        run = ApartRun(script, self._send, self._described, rows, self._outputs)
        returned = run.run(mini_batch, loaded)
        self._patch = run.patch
        return returned

    def _set_aside(self, outputs: Outputs, mini_batch: int) -> None:
        """Hand to the agent what run() has written for outputs in stores."""
        try:
            files = outputs.set_aside(mini_batch)
        except OSError as error:
            raise Unwritable(error) from error
        if files:
            self._send(frames.SET_ASIDE, frames.SET_ASIDE_FILES.pack(mini_batch, files))

    def _warn(self, mini_batch: int) -> None:
        """Hand to the agent the warnings about the data of a mini-batch, before its answer."""
        self._send(frames.WARNED, frames.MINI_BATCH.pack(mini_batch) + self._warnings.take())

    def _fetch(self, kind: int, mini_batch: int, payload: bytes, began: float) -> MiniBatch:
        """Return what is in a file, or is read or copied before run() can be called."""
        if kind in frames.IN_FILE:
            payload = _read_and_remove(payload)
            self._meter.own_bytes += len(payload)
        if kind in frames.OF_PATHS:
            return of_paths(payload)
        return self._load(mini_batch, payload, began, is_apart=kind in frames.OF_APART)

    def _load(self, mini_batch: int, payload: bytes, began: float, *, is_apart: bool) -> MiniBatch:
        """Read or copy what the delivery describes; its time is not that of run()."""
        try:
            if is_apart:
                from parallelrun_worker.execution.isolation import loaded_apart

                loaded = loaded_apart(self._loader, payload)
            else:
                loaded = self._loader.load(payload)
        except (OSError, ValueError, ImportError, MemoryError) as error:
            if isinstance(error, OSError) and error.errno in NO_ROOM:  # an input fails in other ways
                raise NoRoom(error) from error
            raise Unreadable(error) from error
        self._send(frames.LOADED, frames.LOAD.pack(mini_batch, loaded.items, time.perf_counter() - began))
        self._log_loaded(mini_batch, loaded.items)
        if time.perf_counter() >= self._log.due_at:
            self._log.flush_regularly()
        return loaded

    def _failed(
        self, error: BaseException, tickets: int, *, mini_batch: int, items: int, run_s: float, process_s: float
    ) -> None:
        self._exit_if_forked()
        if self._outputs is not None:
            self._outputs.discard()
        if self._warnings:
            self._warn(mini_batch)
        rest = self._used(tickets) + self._described(error)
        answer = frames.pack_result(
            frames.FAILED, rest, mini_batch=mini_batch, items=items, run_s=run_s, process_s=process_s
        )
        self._answer(answer)
        self._meter.measure(tickets)  # what a traceback needs is the input of no try
        event = "its data can't be read," if isinstance(error, Unreadable) else "run() failed"
        self._log.write(
            "ERROR", f"Mini-batch {mini_batch}: {event} after {run_s:.3f} s: {type(error).__name__}.", at_once=True
        )

    def _used(self, tickets: int) -> bytes:
        """Return what a try has used, as a frame has it."""
        return self._meter.measure(tickets)

    def _described(self, error: BaseException) -> bytes:
        return describe(error, self._code, self._masked)

    def _give_back(self, mini_batch: int, error: Exception, tickets: int) -> None:
        """The disk is full, which is not a failure of the mini-batch: another node may run it, or this one later."""
        self._warnings.clear()
        if self._outputs is not None:
            self._outputs.discard()
        self._send(frames.NOT_STORED, frames.MINI_BATCH.pack(mini_batch) + str(error).encode(errors="replace"))
        self._meter.measure(tickets)  # what it has used is of no try

    def _exit_if_forked(self) -> None:
        """End a forked child that has returned from the user's function, as its parent has: only the parent answers."""
        if os.getpid() != self._pid:
            os._exit(1)

    def _write_rows(self, data: bytes) -> int:
        """Append the rows to the part file; returns where they are. Raises NoRoom if the disk takes no more."""
        if not data:
            return 0
        try:
            # Others may append to the file without harm. If it was cut or closed, our rows are gone: no offset before
            # our own last end is valid, and the agent will find that there are no rows at this one.
            begin = max(os.lseek(self._part, 0, os.SEEK_END), self._end)
            _write_all(self._part, data)
        except OSError as error:
            # What was written of it won't be read, and a full disk needs the room.
            with contextlib.suppress(OSError):
                os.ftruncate(self._part, self._end)
            if error.errno in DISK_TROUBLE:
                raise NoRoom(error) from error
            raise
        self._end = begin + len(data)
        return begin

    def _shut_down(self, script: UserScript) -> int:
        problem = b""
        try:
            if script.shutdown is not None:
                script.shutdown()
        except BaseException as error:
            problem = self._described(error)
        self._prints.flush()
        self._send(frames.STOPPED, problem)
        if self._profiler is not None:
            self._profiler.dump()
        how = "failed" if problem else "is done"
        self._log.write("ERROR" if problem else "INFO", f"shutdown() {how}; the worker ends.", at_once=True)
        return 0

    def _answer(self, frame: bytes) -> None:
        """Send the answer for a mini-batch."""
        _write_all(self._results, frame)

    def _send(self, kind: int, payload: bytes) -> None:
        self._exit_if_forked()
        _write_all(self._results, frames.HEAD.pack(kind, len(payload)) + payload)


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def _read_and_remove(path: bytes) -> bytes:
    with open(path, "rb") as file:
        payload = file.read()
    os.unlink(path)
    return payload
