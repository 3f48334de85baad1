"""Has the rows of a table grouped by keys that are not in its paths, before it is cut: once, whole or not at all.

A child process (`parallelrun_worker.shuffle`) reads and sorts into a folder of this leader's own, while the leader goes
on with its rounds. What is whole and durable gets its final name by one rename: the first leader to get so far has made
the groups of this job, whoever leads it later. If a leader dies, its child ends, and the next leader begins again.
"""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from parallelrun_core.durable_files import sync_folder
from parallelrun_core.errors import Fenced, InvalidInput
from parallelrun_core.layout import Layout
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.service import failpoints
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.message import Piece
from parallelrun_master.planning.column_check import bounded_record
from parallelrun_master.planning.file_server import FileServer
from parallelrun_master.planning.formats import format_of

PIECE_BYTES: Final = 8 << 20
"""What is read at once; the memory that the reading takes is a multiple of it."""
_WAIT_S: Final = 0.05
_SECRET: Final = ("PARALLELRUN_", "REDIS_")
"""Our settings have the password of Redis, and the environment of this child isn't hidden from its user's processes."""
_TAIL_BYTES: Final = 2000

OnProgress = Callable[[int, int], object]
"""Called with how many bytes have been grouped, and of how many."""


class ShuffleFailed(Exception):
    """The rows could not be grouped, for a reason other than the rows themselves."""


class Group(NamedTuple):
    """All rows of one combination of values."""

    start: int
    end: int
    keys: list[str | None]


def rows_of(number: int) -> str:
    """The file of the grouped rows of an input, relative to the job's folder: another job may take it over."""
    return str(Layout(Path()).grouped_rows(number))


def read_groups(folder: Path, number: int) -> Iterator[Group]:
    """The groups of an input that has been shuffled, in order."""
    with Layout(folder).groups(number).open("rb") as lines:
        for line in lines:
            yield Group(*json.loads(line))


def warnings_of(folder: Path, number: int) -> list[DataWarning]:
    """The warnings about the rows of an input that has been shuffled; none where they can't be read."""
    with suppress(OSError, msgspec.MsgspecError):  # a disk that lost them has lost no row
        return msgspec.json.decode(Layout(folder).grouping_warnings(number).read_bytes(), type=list[DataWarning])
    return []


class Shuffle:
    """Groups the rows of one input.

    Args:
        folder: of the job.
        number: of the input.
        term: of the leader, who writes in a folder of its own.
        rule: which files may be opened; None: any.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        plan: InputPlan,
        term: int,
        on_progress: OnProgress,
        *,
        rule: PathRule | None = None,
    ) -> None:
        self._folder = folder
        self._number = number
        self._plan = plan
        self._layout = Layout(folder)
        self._target = self._layout.grouped(number)
        self._term = term
        self._own = self._layout.grouping(number, term)
        self._on_progress = on_progress
        self._rule = rule

    def run(self, pieces: Iterable[Piece | None], sizes: Callable[[], Iterable[int]]) -> Iterator[None]:
        """Group them, unless an earlier leader has; yields while there is nothing to do but wait.

        Args:
            pieces: what to read.
            sizes: of the files that it is in.

        Raises:
            InvalidInput: the table is not what its settings say, or has no such columns.
            ShuffleFailed: there is no room for it, or the child process was ended.
            OSError: the disk is full.
            Fenced: a later leader does it.
        """
        if self._target.exists():
            sync_folder(self._folder)  # who made it may have been killed before it did so
            return
        total = sum(sizes())
        self._check_room(total)
        self._make_folder()
        try:
            sorted_pieces: list[Piece] = []
            for piece in pieces:
                if piece is None:
                    yield
                else:
                    sorted_pieces.append(piece)
            yield from self._served(sorted_pieces, total)
            failpoints.reach("shuffle.before_rename")
            self._publish()
            failpoints.reach("shuffle.after_rename")
        except (OSError, InvalidInput, ShuffleFailed) as error:
            if not self._own.exists():
                raise Fenced("a later leader has begun to group the rows again") from error
            raise
        finally:
            shutil.rmtree(self._own, ignore_errors=True)

    def _check_room(self, total: int) -> None:
        needed = total * format_of(self._plan.kind).disk_factor
        free = shutil.disk_usage(self._folder).free
        if free < needed:
            raise ShuffleFailed(
                f"grouping {_mb(total)} of rows by their keys takes at least {_mb(needed)} in the job folder, "
                f"and only {_mb(free)} are free"
            )

    def _make_folder(self) -> None:
        for leftover in list(self._layout.broken_off(self._number, until=self._term)):
            # In one step: a leader that was only paused, and misses it, knows from that what has happened.
            shutil.rmtree(leftover.rename(self._layout.removed(leftover)), ignore_errors=True)
        (self._own / "spilled").mkdir(parents=True)

    def _served(self, pieces: list[Piece], total: int) -> Iterator[None]:
        if not self._plan.is_staged:
            yield from self._child(pieces, total, None)
            return
        versions = {os.fsdecode(piece.path): piece.remote.version for piece in pieces if piece.remote is not None}
        with FileServer(self._rule, versions) as server:
            yield from self._child(pieces, total, server)

    def _child(self, pieces: list[Piece], total: int, server: FileServer | None) -> Iterator[None]:
        config = self._own / "config.json"
        schema = self._layout.schema(self._number)
        plan = bounded_record(self._plan, self._rule)
        if server is not None:
            plan["asks"] = server.fd
        piece_fields = [(os.fsdecode(piece.path), *piece.rest) for piece in pieces]
        fields = {"plan": plan, "schema": str(schema), "pieces": piece_fields, "folder": str(self._own)}
        config.write_text(json.dumps(fields), encoding="utf-8")
        errors = self._own / "stderr"
        with errors.open("wb") as stderr:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "parallelrun_worker.shuffle", str(config)],
                stdin=subprocess.PIPE,  # its end tells the child that nobody waits any more
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self._own,
                env={name: value for name, value in os.environ.items() if not name.startswith(_SECRET)},
                pass_fds=(server.fd,) if server is not None else (),
            )
        if server is not None:
            server.pass_on()
        try:
            yield from self._follow(child, len(pieces), total)
            if child.wait() != 0:
                last = errors.read_text(errors="replace")[-_TAIL_BYTES:].strip().rpartition("\n")[2]
                raise ShuffleFailed(f"the process that groups the rows ended with {child.returncode}: {last}")
        finally:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()

    def _follow(self, child: subprocess.Popen[bytes], pieces: int, total: int) -> Iterator[None]:
        """Follow the child until it ends: reading counts as one half of the progress, writing as the other."""
        assert child.stdout is not None  # noqa: S101 - for the type checker
        rest = b""
        while True:
            ready, _, _ = select.select([child.stdout], [], [], _WAIT_S)
            if ready:
                data = os.read(child.stdout.fileno(), 1 << 16)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._handle(json.loads(line), pieces, total)
            yield

    def _handle(self, message: dict[str, Any], pieces: int, total: int) -> None:
        if "failed" in message and message["failed"] == "disk":
            raise OSError(errno.ENOSPC, message["message"])
        if "failed" in message:
            raise InvalidInput(message["message"])
        if "read" in message:
            self._on_progress(total * message["read"] // (2 * max(pieces, 1)), total)
        elif "written" in message:
            self._on_progress(int(total * (1 + message["written"]) / 2), total)

    def _publish(self) -> None:
        """Publish what is whole and durable as this job's groups."""
        for name in ("config.json", "stderr"):
            (self._own / name).unlink()
        shutil.rmtree(self._own / "spilled", ignore_errors=True)
        sync_folder(self._own)
        try:
            self._own.rename(self._target)
        except OSError:
            if not self._target.exists():  # an earlier leader that was still alive was faster
                raise
        sync_folder(self._folder)


def discard(folder: Path) -> None:
    """Remove all groups of a job that no longer needs them."""
    for leftover in Layout(folder).all_of_grouping:
        shutil.rmtree(leftover, ignore_errors=True)


def _mb(count: float) -> str:
    return f"{count / 1e6:,.1f} MB"
