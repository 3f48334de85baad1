"""A job in pictures: what its workers did in time, how fast it was, what failed in it, and what it was told to do."""

from __future__ import annotations

from parallelrun.resources.resource import Resource, job_path
from parallelrun_core.answers.pictures import EffectiveSettings, Figures, KindsOfErrors, Throughput, Tiles, Timeline


class Pictures(Resource):
    """Pictures of the jobs of a server. A server of an earlier release has none: then they raise NotFound.

    Every method raises Conflict for a pipeline: the jobs of its steps have pictures.
    """

    def tiles(self, job_id: str, *, buckets: int = 512) -> Tiles:
        """All mini-batches, in at most so many buckets."""
        return self._ask("GET", job_path(job_id, "tiles"), Tiles, buckets=buckets)

    def timeline(
        self, job_id: str, *, begin_s: float = 0.0, end_s: float | None = None, buckets: int = 200, lanes: int = 50
    ) -> Timeline:
        """The first workers by node and process, in a window of time."""
        path = job_path(job_id, "timeline")
        return self._ask("GET", path, Timeline, begin_s=begin_s, end_s=end_s, buckets=buckets, limit=lanes)

    def throughput(self, job_id: str, *, points: int = 200) -> Throughput:
        """Return what was done, from the start until now."""
        return self._ask("GET", job_path(job_id, "throughput"), Throughput, points=points)

    def errors(self, job_id: str) -> KindsOfErrors:
        """Return what has failed, by kind."""
        return self._ask("GET", job_path(job_id, "errors"), KindsOfErrors)

    def figures(self, job_id: str) -> Figures:
        """Key figures."""
        return self._ask("GET", job_path(job_id, "figures"), Figures)

    def settings(self, job_id: str) -> EffectiveSettings:
        """Return what the job was told to do, with each setting's origin."""
        return self._ask("GET", job_path(job_id, "settings"), EffectiveSettings)
