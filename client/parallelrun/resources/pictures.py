"""A job in pictures: what its workers did in time, how fast it was, what failed in it, and what it was told to do."""

from __future__ import annotations

from typing import TypeVar

from parallelrun.http.transport import Transport
from parallelrun.resources.resource import as_model, job_path
from parallelrun_core.answers.pictures import EffectiveSettings, Figures, KindsOfErrors, Throughput, Tiles, Timeline

Model = TypeVar("Model")


class Pictures:
    """Pictures of the jobs of a server. A server of an earlier release has none: then they raise NotFound.

    Every method raises Conflict for a pipeline: the jobs of its steps have pictures.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def tiles(self, job_id: str, *, buckets: int = 512) -> Tiles:
        """All mini-batches, in at most so many buckets."""
        return self._get(job_id, "tiles", Tiles, buckets=buckets)

    def timeline(
        self, job_id: str, *, begin_s: float = 0.0, end_s: float | None = None, buckets: int = 200, lanes: int = 50
    ) -> Timeline:
        """The first workers by node and process, in a window of time."""
        window = {"begin_s": begin_s} | ({} if end_s is None else {"end_s": end_s})
        return self._get(job_id, "timeline", Timeline, **window, buckets=buckets, limit=lanes)

    def throughput(self, job_id: str, *, points: int = 200) -> Throughput:
        """Return what was done, from the start until now."""
        return self._get(job_id, "throughput", Throughput, points=points)

    def errors(self, job_id: str) -> KindsOfErrors:
        """Return what has failed, by kind."""
        return self._get(job_id, "errors", KindsOfErrors)

    def figures(self, job_id: str) -> Figures:
        """Key figures."""
        return self._get(job_id, "figures", Figures)

    def settings(self, job_id: str) -> EffectiveSettings:
        """Return what the job was told to do, with each setting's origin."""
        return self._get(job_id, "settings", EffectiveSettings)

    def _get(self, job_id: str, name: str, model: type[Model], **params: float) -> Model:
        query = {key: str(value) for key, value in params.items()}
        return as_model(self._transport.request("GET", job_path(job_id, name), idempotent=True, params=query), model)
