"""The errors of one job's workers on one node, in full, in files for its user."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from parallelrun_core.folder.engine_log import EngineLog
from parallelrun_core.layout import Logs
from parallelrun_core.untrusted.sanitize import indented
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Failure, Outcome

_MAX_BYTES = 16 << 20


class ErrorFiles:
    """A file for each worker: logs/user/error/<node>/<process>.txt. A full disk is not another error.

    Args:
        logs: the job's.
        mask: hides secrets in the texts of errors.
    """

    def __init__(self, logs: Path, node: str, mask: Mask) -> None:
        self._logs = logs
        self._node = node
        self._mask = mask

    def add_try(self, outcome: Outcome) -> None:
        """Record the error of a try, if it has failed."""
        if outcome.failure is not None:
            about = f"mini-batch {outcome.mini_batch}, try {outcome.tries}"
            self._add(outcome.process, about, outcome.failure, outcome.detail)

    def add_init(self, process: str, failure: Failure) -> None:
        """Record the error of an init()."""
        self._add(process, "init()", failure)

    def add_shutdown(self, process: str, failure: Failure) -> None:
        """Record the error of a shutdown(), which fails nothing."""
        self._add(process, "shutdown()", failure)

    def _add(self, process: str, about: str, failure: Failure, detail: str = "") -> None:
        message = self._mask.printable(failure.message)
        if not failure.traceback:  # the worker has not logged it itself: it died of it
            own_log = EngineLog(self._logs, f"node/{self._node}/{process}")
            own_log.error(f"{about[0].upper()}{about[1:]}: {message}")
        path = Logs(self._logs).user_error(self._node, process)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        traceback = self._mask.printable(failure.traceback).rstrip()
        # A traceback ends with the message.
        parts = [self._mask.printable(detail), "" if message in traceback else message, traceback]
        # Indented, so that no line of theirs looks like the beginning of an entry.
        lines = [f"{now} {about}: {failure.category}", *(f"    {indented(part)}" for part in parts if part)]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                if file.tell() < _MAX_BYTES:
                    file.write("\n".join(lines) + "\n\n")
        except OSError:
            pass  # the same error is in the decision log; a full disk must not cause another one
