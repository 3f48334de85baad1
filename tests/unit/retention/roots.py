"""Root folders with jobs that have ended, without any service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Parent
from parallelrun_core.ids import job_id_at
from parallelrun_core.retention.report import SweepReport
from parallelrun_core.retention.rules import Rules
from parallelrun_core.retention.sweep import Sweeper
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState

DAY_S: Final = 86_400.0
START: Final = 1_790_000_000.0


@dataclass
class Root:
    """A root folder, and a clock that tests move."""

    path: Path
    now: float = START
    jobs: list[str] = field(default_factory=list)

    def job(
        self,
        *,
        state: JobState | None = JobState.COMPLETED,
        rows: int = 1000,
        logs: int = 100,
        code: str = "",
        parent: Parent | None = None,
        **spec: Any,
    ) -> str:
        """Add a job that was submitted now; it has ended now unless `state` is None."""
        job_id = job_id_at(self.now, str(len(self.jobs)))
        folder = JobFolder(self.path, job_id)
        folder.create(JobRecord(job_id=job_id, submitted=self.now, code=code, spec=spec, parent=parent))
        folder.layout.make_folders()
        (folder.parts / "session.0").write_bytes(b"r" * rows)
        (folder.outputs / "rows.txt").write_bytes(b"r" * rows)
        stdout = folder.logs / "user" / "stdout" / "node" / "0.stdout.txt"
        stdout.parent.mkdir(parents=True)
        stdout.write_bytes(b"l" * logs)
        (folder.logs / "job_result.txt").write_text("completed")
        if state is not None:
            folder.conclude(
                JobResult(job_id=job_id, state=state, started=self.now, ended=self.now, progress=Progress())
            )
        self.jobs.append(job_id)
        return job_id

    def folder(self, job_id: str) -> JobFolder:
        """The folder of a job."""
        return JobFolder(self.path, job_id)

    def there(self) -> list[str]:
        """The jobs whose folders are there."""
        return [job_id for job_id in self.jobs if self.folder(job_id).has_record]

    def pass_days(self, days: float) -> None:
        """Let time pass."""
        self.now += days * DAY_S

    def sweep(
        self, rules: Rules, *, is_urgent: bool = False, pause: Callable[[float], object] = lambda _: None
    ) -> SweepReport:
        """Sweep once.

        Args:
            pause: what happens between setting aside and removing.
        """
        report = Sweeper(self.path, rules, clock=lambda: self.now, pause=pause).run(is_urgent=is_urgent)
        assert report is not None
        return report
