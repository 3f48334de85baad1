"""Mini-batches by number or by how long they took, and all tries of one of them."""

from __future__ import annotations

from itertools import islice
from typing import Final, Literal

import msgspec
import numpy as np

from parallelrun_api.http.paging import decode_numbers, encode_token
from parallelrun_api.tries.timeline import clock_of
from parallelrun_api.views.mini_batch_inputs import with_input
from parallelrun_api.views.mini_batches import BegunTry, MiniBatchOrder, Page, mini_batch_of
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.mini_batches import MiniBatch, MiniBatchNow, MiniBatchPage, MiniBatchTry
from parallelrun_core.layout import Logs
from parallelrun_core.tries.columns import Array
from parallelrun_core.tries.followed_log import read_record
from parallelrun_core.tries.history import History, RecordPosition
from parallelrun_core.tries.summary import DONE, FAILED, LOST, RETRIED
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Outcome, decode_list, encode_list

_MOST_NAMED: Final = 20_000
"""Mini-batches whose inputs are looked at for one page."""
MOST_TRIES: Final = 500
"""Of one mini-batch that are shown: the last ones."""
_OUTCOMES: Final[dict[int, Literal["completed", "failed", "retried", "lost"]]] = {
    DONE: "completed",
    FAILED: "failed",
    RETRIED: "retried",
    LOST: "lost",
}

_parts: Final = msgspec.json.Decoder(list[msgspec.Raw])


def page(
    history: History, part: MiniBatchOrder, status: Literal["done", "failed"] | None, page_request: Page
) -> MiniBatchPage:
    """Return one page of the decided mini-batches.

    Raises:
        InvalidInput: the token is not one of this list.
        CorruptLog: names are asked for, and the manifest can't be read.
    """
    skip = decode_numbers(page_request.token, part.order_by, 1)[0] if page_request.token else 0
    rows = _chosen(history, part, status)
    if part.input_name:
        return _page_by_name(history, part.input_name, rows[history.tries["mini_batch"][rows] >= skip], page_request)
    if part.order_by == "slowest":
        rows = rows[_slowest(history.tries["run_s"][rows], skip + page_request.limit + 1)]
    else:
        rows = rows[history.tries["mini_batch"][rows] >= skip]
    begin = skip if part.order_by == "slowest" else 0
    page, rest = rows[begin : begin + page_request.limit], rows[begin + page_request.limit :]
    records = _Records(history)
    items = [item for row in page.tolist() if (item := records.mini_batch(row)) is not None]
    following = begin + page_request.limit if part.order_by == "slowest" else 0
    if len(rest) and part.order_by == "id":
        following = int(history.tries["mini_batch"][rest[0]])
    return _page_of(history, items, encode_token(part.order_by, following) if len(rest) else None)


def _page_by_name(history: History, name: str, rows: Array, page_request: Page) -> MiniBatchPage:
    """Return those with an input of such a name, by id; of a large job, after a limit a page ends before it is full."""
    numbers = history.tries["mini_batch"][rows[:_MOST_NAMED]].tolist()
    with_name = list(islice(with_input(history.folder.path, numbers, name), page_request.limit + 1))
    row_by_number = dict(zip(numbers, rows.tolist(), strict=False))
    records = _Records(history)
    found_rows = [row_by_number[number] for number in with_name[: page_request.limit]]
    items = [item for row in found_rows if (item := records.mini_batch(row)) is not None]
    following = int(history.tries["mini_batch"][rows[_MOST_NAMED]]) if len(rows) > _MOST_NAMED else None
    if len(with_name) > page_request.limit:
        following = with_name[-1]
    return _page_of(history, items, None if following is None else encode_token("id", following))


def _page_of(history: History, items: list[MiniBatch], token: str | None) -> MiniBatchPage:
    nodes = sorted({worker.node for worker in history.workers})
    processes = sorted({worker.process for worker in history.workers})
    categories = sorted(history.categories)
    return MiniBatchPage(items=items, next_page_token=token, nodes=nodes, processes=processes, categories=categories)


def _slowest(run_s: Array, most: int) -> Array:
    """Return where the largest of these are, the largest first; those of equal ones that come first."""
    if most < len(run_s):
        least = np.partition(run_s, len(run_s) - most)[len(run_s) - most]
        above, equal = np.flatnonzero(run_s > least), np.flatnonzero(run_s == least)
        chosen = np.concatenate((above, equal[: most - len(above)]))
    else:
        chosen = np.arange(len(run_s))
    ordered: Array = chosen[np.lexsort((chosen, -run_s[chosen]))]
    return ordered


def _chosen(history: History, part: MiniBatchOrder, status: Literal["done", "failed"] | None) -> Array:
    end = history.decided_by.end if part.end is None else min(part.end, history.decided_by.end)
    rows = history.decided_by.range(min(part.first, end), end)
    rows = rows[rows >= 0]
    if status is not None:
        rows = rows[history.tries["status"][rows] == (DONE if status == "done" else FAILED)]
    if part.node or part.process:
        lanes = [
            lane
            for worker, lane in history.workers.items()
            if part.node in ("", worker.node) and part.process in ("", worker.process)
        ]
        rows = rows[np.isin(history.tries["lane"][rows], lanes)]
    if part.category:
        place = history.categories.index(part.category) + 1 if part.category in history.categories else -1
        numbers = history.tries["mini_batch"][rows]
        is_failed = history.tries["status"][rows] == FAILED
        rows = rows[is_failed & (history.category_by.range(0, history.decided_by.end)[numbers] == place)]
    return rows


def status_of(history: History, number: int) -> Literal["done", "failed"] | None:
    """Return what was decided about a mini-batch; None: nothing yet."""
    row = int(history.decided_by.range(number, number + 1)[0])
    if row < 0:
        return None
    return "done" if history.tries["status"][row] == DONE else "failed"


def tries_of(history: History, number: int) -> list[MiniBatchTry]:
    """The tries of a mini-batch, in the order in which they were recorded."""
    start = clock_of(history).start or 0.0
    records = _Records(history)
    rows = np.flatnonzero(history.tries["mini_batch"] == number)
    rows = rows[np.argsort(history.tries["begin"][rows], kind="stable")][-MOST_TRIES:]
    items = []
    for row in rows.tolist():
        outcome = records.outcome(row)
        if outcome is None:
            continue
        begin = float(history.tries["begin"][row])
        items.append(
            MiniBatchTry(
                **msgspec.structs.asdict(mini_batch_of(outcome, records.mask)),
                outcome=_OUTCOMES[int(history.tries["status"][row])],
                generation=outcome.generation,
                begin_s=round(begin - start, 6) if begin and history.tries["is_own"][row] else None,
                logs=_logs(history, outcome.node, outcome.process),
            )
        )
    return items


def now_of(history: History, begun: BegunTry) -> MiniBatchNow:
    """The part of a try that is shown while it is under way."""
    return MiniBatchNow(
        node=begun.node,
        process=begun.process,
        number=begun.at.number,
        doing="running" if begun.at.loaded else "loading",
        started=rfc3339(begun.at.began),
        run_started=rfc3339(begun.at.loaded) if begun.at.loaded else None,
        logs=_logs(history, begun.node, begun.process),
    )


class _Records:
    """The records of tries; one that has several is read once."""

    def __init__(self, history: History) -> None:
        self.mask = Mask(history.record.spec)
        self._history = history
        self._read: dict[RecordPosition, list[msgspec.Raw]] = {}

    def mini_batch(self, row: int) -> MiniBatch | None:
        """Return what is shown of a try; None: it can't be read any more."""
        outcome = self.outcome(row)
        return mini_batch_of(outcome, self.mask) if outcome is not None else None

    def outcome(self, row: int) -> Outcome | None:
        """The whole of a try; None: it can't be read any more."""
        place = self._history.place(row)
        if place not in self._read:
            raw = read_record(self._history.folder.path, *place)
            self._read[place] = _parts.decode(raw) if raw is not None else []
        nth = int(self._history.tries["nth"][row])
        if nth >= len(self._read[place]):
            return None
        return decode_list(encode_list([bytes(self._read[place][nth])]))[0]


def _logs(history: History, node: str, process: str) -> list[str]:
    """The logs of the worker of a try that are there."""
    if not process:
        return []
    logs = Logs(history.folder.logs)
    paths = (
        logs.user / "error" / node / f"{process}.txt",
        logs.stdout(node, process),
        logs.stderr(node, process),
        logs.script_log(node) / f"{process}.log.txt",
        logs.of_node(node) / f"{process}.txt",
    )
    return [str(path.relative_to(logs.path)) for path in paths if path.is_file()]
