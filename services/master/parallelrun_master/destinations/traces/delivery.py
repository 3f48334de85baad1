"""The process that sends traces, with a `TraceOrder` on stdin.

A collector that is away keeps only this process waiting, for the time that OTEL_EXPORTER_OTLP_TIMEOUT allows, and
once for all that is due: who did not take the first trace is not asked to take the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun_core.errors import CorruptLog, NotFound, ParallelRunError
from parallelrun_core.folder.job_span import span_of
from parallelrun_core.layout import outbox_of
from parallelrun_core.service import telemetry
from parallelrun_core.tracing.sampling import Sampler
from parallelrun_core.wire.masking import Mask
from parallelrun_master.outbox.delivery import Clock, DeliveryOrder, JobEnd, carry_out, due_end

if TYPE_CHECKING:
    from parallelrun_master.destinations.traces.exporting import Exporter
    from parallelrun_master.settings import MasterSettings

_SOON_S: Final = 1.0


class TraceOrder(DeliveryOrder, kw_only=True, frozen=True):
    most: int
    """Most mini-batches in a trace."""
    sampler: Sampler


class TraceDelivery:
    """Sends what is owed, one after the other."""

    def __init__(self, order: TraceOrder, exporter: Exporter) -> None:
        self._order = order
        self._root = Path(order.root)
        self._exporter = exporter
        self._clock = Clock(order.now)
        self._put_off_s = 0.0
        """How long all others wait since the collector did not take one."""
        self._log = telemetry.logger()

    def run(self) -> None:
        for name in self._order.names:
            try:
                self._see_to(name)
            except OSError as error:  # nothing can be noted of it now
                self._log.warning("trace_not_noted", name=name, reason=str(error))

    def _see_to(self, name: str) -> None:
        with due_end(self._root, outbox_of(self._root, "traces"), name, self._clock) as end:
            if end is None:
                return
            if self._put_off_s:
                end.put_off(self._put_off_s)
            else:
                self._send(end)

    def _send(self, end: JobEnd) -> None:
        from parallelrun_master.destinations.traces.exporting import NotSent
        from parallelrun_master.destinations.traces.spans import story_of

        job_id, again_s = end.folder.job_id, end.begin_attempt()
        try:
            of_job = span_of(end.folder, end.record, end.generation, self._order.sampler)
            if not of_job.span.is_sampled:  # which couldn't be told when the job ended
                end.owed.remove()
                return
            story = story_of(end.folder, end.record, end.result, end.generation, self._order.most)
            count = self._exporter.send(story, of_job, Mask(end.record.spec))
        except NotSent as error:
            self._log.warning("trace_not_sent", job_id=job_id, reason=str(error), is_final=again_s is None)
            self._put_off_s = again_s or _SOON_S
            if again_s is None:
                end.owed.remove()
        except (CorruptLog, NotFound) as error:
            self._log.warning("trace_not_made", job_id=job_id, reason=str(error), is_final=True)
            end.owed.remove()
        except Exception as error:  # the volume may give it back, a newer master may know how; a bug is of this job
            say = self._log.warning if isinstance(error, (ParallelRunError, OSError)) else self._log.exception
            say("trace_not_made", job_id=job_id, reason=str(error), is_final=again_s is None)
            if again_s is None:
                end.owed.remove()
        else:
            self._log.info("trace_sent", job_id=job_id, trace_id=of_job.span.trace_id, spans=count)
            end.owed.remove()


def order_of(settings: MasterSettings, names: list[str], now: float) -> bytes:
    """Return what a master with these settings wants sent, as the process reads it."""
    tracing = settings.tracing()
    sampler = tracing.sampler if tracing is not None else Sampler()
    return TraceOrder.of(settings, names, now, most=settings.trace_mini_batches, sampler=sampler)


def main() -> None:
    from parallelrun_master.destinations.traces.exporting import Exporter

    carry_out(TraceOrder, lambda order, _: TraceDelivery(order, Exporter()).run())


if __name__ == "__main__":
    main()
