"""The places where a run of a pipeline on this machine writes, and how the outputs of its steps get there.

DIR/<output>/      each output of the pipeline
DIR/<step>/        the outputs of each last step of which nothing is an output of the pipeline
DIR/logs/          the pipeline's logs; those of each step are in DIR/logs/<step>/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from parallelrun.embedded.run_folder import RunFolder
from parallelrun.embedded.run_places import check_apart, check_place, default_folder
from parallelrun.local_folder import local_folder
from parallelrun_core.errors import NotFound
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
        check_place(place, earlier, overwrite=overwrite)
        for job in jobs:
            check_apart(str(place), job)
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
            An empty text, as no file has the rows of a pipeline; and the path or URL of each output by its name.

        Raises:
            InvalidInput: something else has been put there meanwhile. What has not been moved is still in the jobs.
        """
        outputs = dict(self._handed_over(pipeline))
        self.folder.mark_handed_over()
        return "", outputs

    def _handed_over(self, pipeline: JobFolder) -> Iterator[tuple[str, str]]:
        """Put all outputs in their place; yields the name of each, and its path or URL."""
        for name in self.spec.outputs:
            yield from self._output(pipeline, name, name)
        by_step = standings(pipeline, self.spec)
        for step in last_steps(self.spec):
            if job_id := by_step[step].job_id:
                yield from self._outputs_of_step(step, JobFolder(pipeline.root, job_id))

    def _outputs_of_step(self, step: str, job: JobFolder) -> Iterator[tuple[str, str]]:
        record = job.record()
        if record.is_pipeline:
            for name in record.pipeline_spec().outputs:
                yield from self._output(job, name, f"{step}/{name}")
            return
        for name, path in job.output_paths(record.job_spec()).items():
            if _is_elsewhere(job, path):
                yield f"{step}/{name}", path
        entries = sorted(job.outputs.iterdir())
        for each in entries:
            self.folder.hand_over_output(each, f"{step}/{each.name}")
        if entries:
            yield step, str(self.folder.folder / step)

    def _output(self, pipeline: JobFolder, output: str, place: str) -> Iterator[tuple[str, str]]:
        """Put an output of a pipeline in its place; of one that several turns have made, each part below its turn."""
        with suppress(NotFound):  # its step was skipped
            for part in parts_of(pipeline, output):
                spec = part.job.record().job_spec()
                path, kind = part.job.output_paths(spec)[part.output], spec.outputs[part.output].type
                handed_over = self._in_place(part.job, path, f"{place}/{part.name}".rstrip("/"), kind)
                yield place, str(self.folder.folder / place) if part.name else handed_over

    def _in_place(self, job: JobFolder, path: str, name: str, kind: str) -> str:
        """Put a file or folder in its place, if it is the job's own; returns where it is, empty if nothing is there."""
        if _is_elsewhere(job, path):
            return path
        place = f"{name}/{Path(path).name}" if kind == "uri_file" else name
        return str(self.folder.hand_over_output(Path(path), place)) if Path(path).exists() else ""


def _is_elsewhere(job: JobFolder, path: str) -> bool:
    return is_url(path) or not Path(path).is_relative_to(job.outputs)


def jobs_of_steps(pipeline: JobFolder, above: str = "") -> Iterator[tuple[str, JobFolder]]:
    """The jobs that have run steps of a pipeline, with those of pipelines in it, each with its name such as `a/b`."""
    for step, standing in standings(pipeline, pipeline.record().pipeline_spec()).items():
        if standing.job_id and not standing.is_reused:
            job = JobFolder(pipeline.root, standing.job_id)
            yield f"{above}{step}", job
            if job.has_record and job.record().is_pipeline:
                yield from jobs_of_steps(job, f"{above}{step}/")
