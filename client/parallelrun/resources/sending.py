"""Requests that bring a job to a server, with its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from parallelrun.packaging.submission import UPLOAD_TIMEOUT_S, body_of, with_contexts_sent, without_its_code
from parallelrun.resources.assets import Assets
from parallelrun.resources.resource import Model, Resource

if TYPE_CHECKING:
    from parallelrun_core.code.source import CodeSource
    from parallelrun_core.spec import JobSpec, PipelineSpec


class SendsJobs(Resource):
    """The base of resources whose requests have a job with them."""

    def _job_and_code(
        self, spec: JobSpec | PipelineSpec, *, upload_code: bool
    ) -> tuple[dict[str, Any], dict[str, CodeSource]]:
        """The document of a job as the server takes it, and the code that goes with it.

        Args:
            upload_code: send the folders, too, of which images are built: that is done here. Otherwise nothing is sent:
                the server reads all of them at the same paths.
        """
        document, sources = without_its_code(spec, upload_code=upload_code)
        if upload_code:
            document = with_contexts_sent(document, Assets(self._transport, "code").send_code)
        return document, sources

    def _send(
        self,
        method: str,
        path: str,
        model: type[Model],
        document: Mapping[str, Any],
        sources: Mapping[str, CodeSource],
        *,
        headers: Mapping[str, str] | None = None,
        **params: Any,
    ) -> Model:
        """Return the answer to a request with a document and code, which may be repeated; `params` as of `_ask`."""
        with body_of(document, sources) as body:
            return self._ask(method, path, model, body=body, headers=headers, read_timeout_s=UPLOAD_TIMEOUT_S, **params)
