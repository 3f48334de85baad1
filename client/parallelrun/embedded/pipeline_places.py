"""The places where a run of a pipeline on this machine writes, and how it puts there what its steps have made.

DIR/<output>/      each output of the pipeline
DIR/<step>/        what a last step has made, of which nothing is such an output
DIR/logs/          the pipeline's logs; those of each step are in DIR/logs/<step>/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from parallelrun.embedded import earlier_run
from parallelrun.embedded.run_folder import RunFolder
from parallelrun.embedded.run_places import check_apart, check_is_no_file, default_folder
from parallelrun.local_folder import local_folder
from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.pipelines.outputs import parts_of
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.pipeline_steps import last_steps
from parallelrun_core.storage.location import is_url


class PipelinePlaces:
    """The folder of one run of a pipeline.

    Args:
        spec: the pipeline, as the user gave it.
        jobs: its steps, as far as they are known.
        folder: gets its outputs and logs; by default `NAME-TIME` in the current folder.
        overwrite: replace what an earlier run has left there.
        earlier: the pipeline of an earlier run, of which this one may reuse steps.

    Raises:
        InvalidInput: a step would read what is written there, or something is there that is not to be replaced. Nothing
            has changed.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        jobs: Sequence[JobSpec],
        *,
        folder: str | Path | None,
        overwrite: bool,
        earlier: JobFolder | None = None,
    ) -> None:
        place = Path(local_folder(folder, "--output") if folder else default_folder(spec.name)).absolute()
        check_is_no_file(place)
        for job in jobs:
            check_apart(str(place), job)
        if earlier is not None and earlier.path.is_relative_to(place):
            raise InvalidInput.at("--output", f"{place} is the folder of the earlier run", "name another folder")
        if not overwrite:
            earlier_run.check_nothing_is_lost(place)
        self.spec = spec
        output_names = [name for name, output in spec.outputs.items() if not output.path]
        self.folder = RunFolder(place, outputs=[*output_names, *last_steps(spec)], overwrite=overwrite)

    def hand_over_logs(self, pipeline: JobFolder) -> list[JobFolder]:
        """Put the logs of all steps beside those of the pipeline; returns their jobs."""
        jobs = list(jobs_of_steps(pipeline))
        for name, job in jobs:
            self.folder.add_logs(job.logs, name)
        return [job for _, job in jobs]

    def hand_over_outputs(self, pipeline: JobFolder) -> tuple[str, dict[str, str]]:
        """Put the outputs of the completed pipeline in their place; those with a path of their own are there already.

        Returns:
            Nothing, where a job has its rows; and each output by its name.

        Raises:
            InvalidInput: something else has been put there meanwhile. What has not been moved is still in the jobs.
        """
        outputs: dict[str, str] = {}
        for name in self.spec.outputs:
            with suppress(NotFound):  # its step was skipped
                self._hand_over(pipeline, name, name, outputs)
        by_step = standings(pipeline, self.spec)
        for step in last_steps(self.spec):
            if by_step[step].job_id:
                self._hand_over_step(step, JobFolder(pipeline.root, by_step[step].job_id), outputs)
        self.folder.mark_handed_over()
        return "", outputs

    def _in_place(self, job: JobFolder, path: str, name: str, kind: str) -> str:
        if is_url(path) or not Path(path).is_relative_to(job.outputs):
            return path
        place = f"{name}/{Path(path).name}" if kind == "uri_file" else name
        return str(self.folder.hand_over_output(Path(path), place)) if Path(path).exists() else ""

    def _hand_over(self, pipeline: JobFolder, output: str, place: str, outputs: dict[str, str]) -> None:
        """Put an output of a pipeline in its place; of one that several turns have made, each part below its turn."""
        for part in parts_of(pipeline, output):
            spec = part.job.record().job_spec()
            path, kind = part.job.output_paths(spec)[part.output], spec.outputs[part.output].type
            part_place = f"{place}/{part.name}".rstrip("/")
            handed_over = self._in_place(part.job, path, part_place, kind)
            outputs.setdefault(place, str(self.folder.folder / place) if part.name else handed_over)

    def _hand_over_step(self, step: str, job: JobFolder, outputs: dict[str, str]) -> None:
        record = job.record()
        if record.is_pipeline:
            inner = record.pipeline_spec()
            for name in inner.outputs:
                with suppress(NotFound):
                    self._hand_over(job, name, f"{step}/{name}", outputs)
            return
        spec = record.job_spec()
        outputs |= {f"{step}/{name}": path for name, path in job.output_paths(spec).items() if is_elsewhere(job, path)}
        entries = sorted(job.outputs.iterdir())
        for each in entries:
            self.folder.hand_over_output(each, f"{step}/{each.name}")
        if entries:
            outputs[step] = str(self.folder.folder / step)


def is_elsewhere(job: JobFolder, path: str) -> bool:
    """Return whether an output isn't in the job's own folder."""
    return is_url(path) or not Path(path).is_relative_to(job.outputs)


def jobs_of_steps(pipeline: JobFolder, above: str = "") -> Iterator[tuple[str, JobFolder]]:
    """The jobs that have run steps of a pipeline, with those of pipelines in it, each with its name such as `a/b`."""
    for step, standing in standings(pipeline, pipeline.record().pipeline_spec()).items():
        if standing.job_id and not standing.is_reused:
            job = JobFolder(pipeline.root, standing.job_id)
            yield f"{above}{step}", job
            if job.has_record and job.record().is_pipeline:
                yield from jobs_of_steps(job, f"{above}{step}/")
