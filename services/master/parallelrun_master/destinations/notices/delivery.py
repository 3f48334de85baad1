"""The process that sends webhooks, with a `NoticeOrder` on stdin.

Names are looked up, and TLS is negotiated, for as long as that takes; the master ends a process that takes too long.
Nothing is lost then: what was not noted as delivered is owed.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.layout import Logs, outbox_of
from parallelrun_core.service import telemetry
from parallelrun_core.service.secret_source import SecretUnusable
from parallelrun_core.spec.notify import Notify
from parallelrun_core.spec.secrets import OF_NOTICES
from parallelrun_core.untrusted.sanitize import visible
from parallelrun_master.destinations.notices.message import KeyUnusable, body, headers, key_of, notice_id
from parallelrun_master.destinations.notices.sending import NotDelivered, post
from parallelrun_master.outbox.delivery import Clock, DeliveryOrder, JobEnd, carry_out, due_end
from parallelrun_master.policy.notices import Allowed, key_file

if TYPE_CHECKING:
    from parallelrun_core.folder.job_folder import JobFolder
    from parallelrun_core.folder.records import JobRecord, JobResult
    from parallelrun_core.service.secret_source import SecretSource
    from parallelrun_master.settings import MasterSettings

_AT_ONCE: Final = 8


class NoticeOrder(DeliveryOrder, kw_only=True, frozen=True):
    allow: str


class NoticeDelivery:
    def __init__(self, order: NoticeOrder, secrets: SecretSource) -> None:
        self._order = order
        self._root = Path(order.root)
        self._secrets = secrets
        self._allowed = Allowed.parse(order.allow)
        self._clock = Clock(order.now)
        self._log = telemetry.logger()

    def run(self) -> None:
        """Send all of the order, several at a time."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self.deliver, self._order.names))

    def deliver(self, name: str) -> None:
        """Send one notice, unless another process does."""
        with due_end(self._root, outbox_of(self._root, "notices"), name, self._clock) as end:
            if end is not None:
                self._send(end)

    def _send(self, end: JobEnd) -> None:
        folder, attempts = end.folder, end.owed.attempts
        again_s = end.begin_attempt()
        try:
            status = self._posted(end.record, end.result, end.generation)
        except (NotDelivered, KeyUnusable, SecretUnusable, ValueError, ParallelRunError) as error:
            is_final = again_s is None or getattr(error, "is_final", False)
            next_action = "given up" if is_final else f"again in {again_s:.0f} s"
            self._say(folder, f"attempt {attempts.count}: not delivered: {error}; {next_action}")
            self._log.warning("notice_not_delivered", job_id=folder.job_id, reason=str(error), is_final=is_final)
            if is_final:
                end.owed.remove()
            return
        self._say(folder, f"attempt {attempts.count}: delivered, answered with {status}")
        self._log.info("notice_delivered", job_id=folder.job_id, attempts=attempts.count)
        end.owed.remove()

    def _posted(self, record: JobRecord, result: JobResult, generation: int) -> int:
        notify = notify_of(record)
        if notify is None:
            raise NotDelivered("nobody wants to know", is_final=True)
        content = body(record, result, generation)
        name = notice_id(record.job_id, generation)
        return post(notify.url, headers(name, int(time.time()), content, self._key(notify)), content, self._allowed)

    def _key(self, notify: Notify) -> bytes | None:
        """The key that signs, as it is now. A notice that is to be signed is never sent without."""
        if not notify.secret:
            return None
        name = f"{OF_NOTICES}/{key_file(urlsplit(notify.url).hostname or '', notify.secret)}"
        try:
            return key_of(self._secrets.read(name))
        except KeyUnusable as error:
            raise KeyUnusable(f"the key {name} can't be used: {error}") from error

    def _say(self, folder: JobFolder, text: str) -> None:
        """A line for the owner of the job, among its logs."""
        path = Logs(folder.logs).sys / "notices.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{now} {visible(text, lines=False)}\n")


def notify_of(record: JobRecord) -> Notify | None:
    """Return who is told of the end of a job.

    Raises:
        ValueError: a later release has written it in another way.
    """
    fields = record.spec.get("notify")
    return Notify.model_validate(fields) if fields else None


def order_of(settings: MasterSettings, names: list[str], now: float) -> bytes:
    """Return what a master with these settings wants sent, as the process reads it."""
    return NoticeOrder.of(settings, names, now, allow=settings.notify_allow)


def main() -> None:
    carry_out(NoticeOrder, lambda order, secrets: NoticeDelivery(order, secrets).run())


if __name__ == "__main__":
    main()
