"""The reference's streaming contract: a script that takes mini-batches by `enqueue()` and hands back what has ended.

Functions of the entry script, in place of run():

    enqueue(mini_batch, mini_batch_context)      takes a mini-batch, and returns at once
    get_finished_batch_result() -> dict          of the mini-batches that have ended since the last call:
                                                 id -> {"ret": rows, "mini_batch_context": …, "exception": None}
    check_all_tasks_processed() -> bool          nothing is left in the script
    get_processing_batch_number() -> int         how many mini-batches the script holds
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parallelrun_worker.execution.user_script import UserScript
    from parallelrun_worker.mini_batches.mini_batch import MiniBatch

FUNCTIONS = ("enqueue", "check_all_tasks_processed", "get_finished_batch_result", "get_processing_batch_number")
_POLL_S = (0.005, 0.1)
"""Between two looks for results: the first after one that has found some, doubled up to the second."""
_LOOKS_BEFORE_LOST = 3
"""A script may say that nothing is left a moment before its last result can be had."""


class Streaming:
    """Passes mini-batches to such a script, and waits for their results.

    Raises:
        AttributeError: the script lacks one of the functions.
    """

    def __init__(self, script: UserScript, events: asyncio.AbstractEventLoop) -> None:
        missing = [name for name in FUNCTIONS if not callable(getattr(script.module, name, None))]
        if missing:
            raise AttributeError(
                f"the entry script has no {' and no '.join(f'{name}()' for name in missing)}; a streaming script has "
                f"{', '.join(f'{name}()' for name in FUNCTIONS)}"
            )
        self._module: Any = script.module
        self._events = events
        self._waiting: dict[str, asyncio.Future[object]] = {}
        self._poller: asyncio.Task[None] | None = None

    async def run(self, script: UserScript, mini_batch: int, loaded: MiniBatch) -> object:
        """Return the rows of a mini-batch once the script hands them back; the script's exception is raised."""
        future: asyncio.Future[object] = self._events.create_future()
        self._waiting[str(mini_batch)] = future
        try:
            self._module.enqueue(loaded.value, script.context(mini_batch, loaded))
            if self._poller is None or self._poller.done():
                self._poller = self._events.create_task(self._poll())
            return await future
        finally:
            self._waiting.pop(str(mini_batch), None)

    async def _poll(self) -> None:
        pause, empty_looks = _POLL_S[0], 0
        while self._waiting:
            await asyncio.sleep(pause)
            try:
                any_ended = self._take_results()
                is_over = not any_ended and bool(self._module.check_all_tasks_processed())
            except Exception as error:  # nobody can know whose results they were
                self._fail_all(error)
                return
            pause = _POLL_S[0] if any_ended else min(2 * pause, _POLL_S[1])
            empty_looks = empty_looks + 1 if is_over else 0
            if empty_looks >= _LOOKS_BEFORE_LOST:
                self._fail_all(
                    RuntimeError(
                        "check_all_tasks_processed() returned True, but get_finished_batch_result() never had this "
                        "mini-batch"
                    )
                )

    def _take_results(self) -> bool:
        """Settle the mini-batches that have ended; whether there was one."""
        results = self._module.get_finished_batch_result() or {}
        for mini_batch, result in results.items():
            future = self._waiting.get(str(mini_batch))
            if future is None or future.done():
                continue
            error = result.get("exception")
            if error is None:
                future.set_result(result.get("ret"))
            else:
                future.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))
        return bool(results)

    def _fail_all(self, error: Exception) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
