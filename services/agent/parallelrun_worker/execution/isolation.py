"""Running the items of a mini-batch apart: halves, and halves of halves, until those that make run() fail are alone.

The agent asks for it after the last try of a mini-batch has failed, and is told of each call before and after it. So
when a call kills the worker, the agent knows which, and asks the next worker to go on: what has failed is never called
again. The rows of the parts that went well are kept in memory, and become the rows of the mini-batch in one piece.

When a user has failed items tried again, only these are run: the rows of the others are kept (`kept_rows.py`).
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from parallelrun_worker import frames
from parallelrun_worker.execution.failures import Unwritable
from parallelrun_worker.mini_batches.mini_batch import MiniBatch, of_paths
from parallelrun_worker.plurals import counted
from parallelrun_worker.rows.kept_rows import ItemRange
from parallelrun_worker.rows.returned import BadReturn, as_rows, kind_of
from parallelrun_worker.script_api.script import ItemError

if TYPE_CHECKING:
    from parallelrun_worker.execution.user_script import UserScript
    from parallelrun_worker.mini_batches.mini_batch import Loader
    from parallelrun_worker.outputs import Outputs
    from parallelrun_worker.rows import RowRenderer
    from parallelrun_worker.rows.kept_rows import Patch

_CALLS_WITHOUT_SUCCESS = 14
"""Three levels of halves: if every one of them has failed, the items are not to blame."""


class Uneven(Exception):
    """run() returned another number of rows than a part has items, so rows can't be told apart by item."""


def run_apart(
    items: int,
    failed: Iterable[ItemRange],
    calls: int,
    call: Callable[[ItemRange], list[Any] | None],
    only: Iterable[ItemRange] = (),
) -> list[tuple[ItemRange, Any]]:
    """Call run() for parts of a mini-batch that has failed as a whole; returns the parts that went well, in order.

    The largest part that has failed is halved next, so that as few items as possible fail together when no more calls
    are allowed. If its first half goes well, the other one must have failed: it is halved without another call, unless
    it is a single item.

    Args:
        failed: parts that are known to fail, and with them all that they are in.
        calls: the maximum number of further calls.
        call: returns the rows of a part, None if run() has failed.
        only: parts to run first, and to halve if they fail, instead of the whole.

    Raises:
        Uneven: raised by `call`.
    """
    failed_parts = set(failed)
    good: list[tuple[ItemRange, Any]] = []
    call_count = 0

    def rows_of(part: ItemRange) -> list[Any] | None:
        nonlocal call_count
        if call_count >= calls or any(map(part.has, failed_parts)):
            return None
        call_count += 1
        return call(part)

    to_halve = [(-items, ItemRange(0, items))] if items > 1 and not only else []
    for part in only:
        if (rows := rows_of(part)) is not None:
            good.append((part, rows))
        elif part.items > 1:
            heapq.heappush(to_halve, (-part.items, part))
    while to_halve and calls > call_count and (good or only or call_count < _CALLS_WITHOUT_SUCCESS):
        _, part = heapq.heappop(to_halve)
        is_left_good = False
        for half in part.halves():
            is_implied = is_left_good and half.items > 1
            if not is_implied and (rows := rows_of(half)) is not None:
                good.append((half, rows))
                is_left_good = True
            elif half.items > 1:
                heapq.heappush(to_halve, (-half.items, half))
    return sorted(good, key=lambda each: each[0])


def copy_of(returned: Any) -> Any:
    """Return a copy of what run() returned: it may use the same list again in its next call."""
    import copy

    try:
        return copy.deepcopy(returned)
    except Exception:  # some rows can't be copied
        return list(returned) if isinstance(returned, (list, tuple)) else returned.copy()


def joined(values: list[Any]) -> Any:
    """Return what run() would have returned for all of these parts together.

    Raises:
        Uneven: it has returned a list for one part, and a table for another.
    """
    if all(isinstance(each, (list, tuple)) for each in values):
        return [row for each in values for row in each]
    kinds = {type(each) for each in values}
    if len(kinds) > 1:
        raise Uneven(f"run() returned {' and '.join(sorted(kind.__name__ for kind in kinds))}")
    if hasattr(values[0], "to_csv"):
        import pandas as pd

        return pd.concat(values)
    import numpy as np

    return np.concatenate(values)


class IsolatedItems(NamedTuple):
    """A mini-batch whose items are run apart."""

    failed: list[ItemRange]
    """Parts that are known to fail."""
    calls: int
    """The maximum number of calls of run()."""
    part: Callable[[ItemRange], MiniBatch]
    """Returns the argument of run() for a part; raises what `Loader.load` raises."""
    only: list[ItemRange]
    """The parts to run again; none: all items are run."""
    other_rows: bytes
    """The rows of all other items."""
    other_count: int


def loaded_apart(loader: Loader, request: bytes) -> MiniBatch:
    """Return a mini-batch whose value is an `IsolatedItems`. A table is read at once, files are loaded part by part.

    Args:
        request: a line of JSON with the `kind` of the delivery, the parts that are known to fail (`failed`), and how
            many `calls` are left; if only some items are run again, the parts with these (`only`), how many rows the
            others have (`kept_rows`) and in how many bytes (`kept_bytes`). Then these rows, and the payload of the
            delivery.

    Raises:
        OSError, ValueError, ImportError: the table can't be read.
    """
    head, _, payload = request.partition(b"\n")
    plan = json.loads(head)
    size = plan.get("kept_bytes", 0)
    other_rows, payload = payload[:size], payload[size:]
    items, part = _items_of(loader, plan["kind"], payload)
    failed, only = ([ItemRange(*each) for each in plan.get(name, ())] for name in ("failed", "only"))
    return MiniBatch(IsolatedItems(failed, plan["calls"], part, only, other_rows, plan.get("kept_rows", 0)), items)


def _items_of(loader: Loader, kind: int, payload: bytes) -> tuple[int, Callable[[ItemRange], MiniBatch]]:
    if kind in frames.OF_PATHS:
        paths = payload.split(b"\0")
        return len(paths), lambda part: of_paths(b"\0".join(paths[part.first : part.first + part.items]))
    described: dict[str, Any] = json.loads(payload)
    if not described["pieces"]:
        files = described["paths"]

        def of_files(part: ItemRange) -> MiniBatch:
            some = {**described, "paths": files[part.first : part.first + part.items]}
            return loader.load(json.dumps(some).encode())

        return len(files), of_files
    whole = loader.load(payload)
    return whole.items, lambda part: _rows_of(whole, part)


def _rows_of(whole: MiniBatch, part: ItemRange) -> MiniBatch:
    value: Any = whole.value
    end = part.first + part.items
    if hasattr(value, "iloc"):
        rows = value.iloc[part.first : end].reset_index(drop=True)
    elif isinstance(value, list):
        rows = value[part.first : end]
    else:  # a table of pyarrow or Polars
        rows = value.slice(part.first, part.items)
    mini_batch = MiniBatch(rows, part.items)
    mini_batch.dataset, mini_batch.partition_key_value = whole.dataset, whole.partition_key_value
    mini_batch.first_row = None if whole.first_row is None else whole.first_row + part.first
    return mini_batch


class ApartRun:
    """Runs a mini-batch apart for a worker.

    Args:
        send: sends a frame of this kind to the agent.
        describe: returns an error as a frame has it.
        rows: renders them; None if rows are not stored.
        outputs: those in a store, if there are any: only files of parts count that went well.
    """

    def __init__(
        self,
        script: UserScript,
        send: Callable[[int, bytes], None],
        describe: Callable[[BaseException], bytes],
        rows: RowRenderer | None = None,
        outputs: Outputs | None = None,
    ) -> None:
        self._outputs = outputs
        self.patch: Patch | None = None
        """There if only some items were run again: what makes all rows."""
        self._rows = rows
        self._script = script
        self._send = send
        self._describe = describe

    def run(self, mini_batch: int, loaded: MiniBatch) -> object:
        """Return what run() has returned for the items that went well.

        Raises:
            Uneven: it has not returned one row for each item, so nothing of it counts.
        """
        apart: Any = loaded.value
        if apart.only:
            return self._run_again(mini_batch, apart, loaded.items)
        good = run_apart(loaded.items, apart.failed, apart.calls, lambda part: self._call(mini_batch, apart, part))
        return joined([returned for _, returned in good]) if good else []

    def _run_again(self, mini_batch: int, apart: IsolatedItems, items: int) -> object:
        """Run the items that have failed before; all items where the rows of the others can't be told apart."""
        from parallelrun_worker.rows.kept_rows import KeptRows, Patch, split

        other_rows: KeptRows | None = KeptRows(b"", [], apart.other_count)
        if self._rows is not None:
            header_bytes = self._rows.header_bytes(apart.other_rows)
            other_rows = split(apart.other_rows, apart.other_count, header_bytes)
        only = [ItemRange(0, items)] if other_rows is None else apart.only
        good = run_apart(items, apart.failed, apart.calls, lambda part: self._call(mini_batch, apart, part), only)
        if other_rows is None:
            return joined([returned for _, returned in good]) if good else []
        self.patch = Patch(other_rows, only, good)
        return []

    def _call(self, mini_batch: int, apart: IsolatedItems, part: ItemRange) -> Any:
        self._tell(mini_batch, part, frames.PART_BEGUN)
        began, loaded = time.perf_counter(), None
        try:
            loaded = apart.part(part)
            returned: Any = as_rows(self._script.run(mini_batch, loaded, part))
            kind_of(returned)
            rows = len(returned)
            if ItemError.is_used:
                _raise_first(returned, part.items)
        except BadReturn as error:
            raise Uneven(str(error)) from error
        except BaseException as error:  # sys.exit() in run() fails the part, not the worker
            if self._outputs is not None:
                self._outputs.discard_part()
            self._tell(mini_batch, part, frames.PART_FAILED, time.perf_counter() - began, error)
            return None
        finally:
            if loaded is not None and loaded.copies is not None:
                loaded.copies.remove()
        if rows != part.items:
            raise Uneven(f"run() returned {counted(rows, 'row')} for {counted(part.items, 'item')}")
        if self._outputs is not None:
            self._set_aside(self._outputs, mini_batch)
        self._tell(mini_batch, part, frames.PART_DONE, time.perf_counter() - began)
        return copy_of(returned)

    @staticmethod
    def _set_aside(outputs: Outputs, mini_batch: int) -> None:
        """Keep the files of a part that went well. Raises Uneven, Unwritable."""
        try:
            outputs.set_part_aside(mini_batch)
        except FileExistsError as error:
            raise Uneven(f"{error}, so one would replace the other") from error
        except OSError as error:
            raise Unwritable(error) from error

    def _tell(
        self, mini_batch: int, part: ItemRange, event: int, run_s: float = 0.0, error: BaseException | None = None
    ) -> None:
        described = self._describe(error) if error is not None else b""
        self._send(frames.PART, frames.PART_EVENT.pack(mini_batch, *part, event, run_s) + described)


def _raise_first(returned: object, items: int) -> None:
    """Let a part fail that has an item that has failed: it is halved until that one is alone.

    Raises:
        ItemError: that of the first item that has failed.
        BadReturn: nobody knows which item it is of.
    """
    from parallelrun_worker.execution.item_errors import separate

    errors = separate(returned, items).errors
    if errors:
        raise errors[0][1]
