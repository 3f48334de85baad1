"""Batch endpoints and their deployments: named jobs over data that whoever calls them gives."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from parallelrun.models import BatchDeployment, BatchEndpoint, Job
from parallelrun.packaging.submission import notes_on, submission_headers
from parallelrun.resources.resource import Definition, Definitions
from parallelrun.resources.sending import SendsJobs

if TYPE_CHECKING:
    from parallelrun_core.endpoints.document import DeploymentReading


class BatchEndpoints(Definitions[BatchEndpoint], SendsJobs):
    """The batch endpoints of a server. The deployments of one that is deleted go, too; their jobs stay."""

    path = "/v1/batch-endpoints"
    model = BatchEndpoint

    def create(self, definition: Definition | None = None, *, name: str = "") -> BatchEndpoint:
        """Define a batch endpoint, or define it anew; its deployments stay.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON, as Azure ML has them. It may be
                missing.
            name: what it is called, in place of the name in the document.

        Raises:
            InvalidInput: something is wrong with it. Nothing was sent.
        """
        from parallelrun.job_file.reading import read_definition
        from parallelrun_core.endpoints.document import read_endpoint

        with read_definition({} if definition is None else definition, name=name) as (document, _):
            endpoint = read_endpoint(document)
        return self._put(endpoint.name, document)

    def invoke(
        self,
        name: str,
        data: str | Mapping[str, Any] | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        deployment_name: str = "",
        idempotency_key: str | None = None,
        **settings: Any,
    ) -> Job:
        """Make a job of a deployment and data.

        Args:
            data: if there is one input: a path on the server, a URL, a place in a datastore, a data asset; or a mapping
                with `path` and `type`.
            inputs: the same by name, if there are several.
            deployment_name: by default, the endpoint's default deployment.
            idempotency_key: calling again with the same one gives the same job. Random by default, so that a request
                whose answer was lost can be repeated.
            settings: what else docs/batch-endpoints.md has, such as `mini_batch_size` or `output_path`.

        Raises:
            NotFound: there is no such endpoint or deployment.
            InvalidRequest: the server refuses what is given.
        """
        fields = {"deployment_name": deployment_name, "input": data, "inputs": dict(inputs or {}), **settings}
        body = {key: value for key, value in fields.items() if value not in (None, "", {})}
        headers = submission_headers(idempotency_key or secrets.token_hex(16))
        return self._send("POST", f"{self.url(name)}:invoke", Job, body, {}, headers=headers)


class BatchDeployments(SendsJobs):
    """The deployments of a server's batch endpoints."""

    def create(
        self,
        definition: Definition,
        *,
        name: str = "",
        endpoint_name: str = "",
        set_default: bool = False,
        upload_code: bool = True,
    ) -> BatchDeployment:
        """Define a deployment, or define it anew, with its code as it is now.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON, as Azure ML has them. Relative
                paths start from the folder of that file, or from the current folder.
            name, endpoint_name: what it is called, and whose it is, in place of what the document says.
            set_default: invoke it when a request names none.
            upload_code: send its code. Otherwise the server reads it at the same path, now.

        Raises:
            InvalidInput: something is wrong with it. Nothing was sent.
            NotFound: there is no such endpoint.
            InvalidRequest: the server refuses it, as for a path that jobs may not use.
        """
        deployment = self._read(definition, name=name, endpoint=endpoint_name)
        job, sources = self._job_and_code(deployment.reading.spec, upload_code=upload_code)
        body = {"description": deployment.description, "tags": deployment.tags, "job": job}
        body["slots"] = msgspec.to_builtins(deployment.slots)
        path = _path(deployment.endpoint, deployment.name)
        created = self._send("PUT", path, BatchDeployment, body, sources, default=set_default)
        return msgspec.structs.replace(created, notes=notes_on(deployment.reading, created.notes))

    def _read(self, definition: Definition, *, name: str, endpoint: str) -> DeploymentReading:
        from parallelrun.job_file.reading import read_definition
        from parallelrun.resources.names import resolver_over
        from parallelrun_core.endpoints.document import read_deployment

        with read_definition(definition, name=name, endpoint_name=endpoint) as (document, folder):
            return read_deployment(document, folder=folder, names=resolver_over(self._transport)(folder))

    def list(self, endpoint_name: str) -> list[BatchDeployment]:
        """Return the deployments of an endpoint, by name. Raises NotFound."""
        return list(self._all(f"{_path(endpoint_name)}/deployments", BatchDeployment))

    def get(self, name: str, endpoint_name: str) -> BatchDeployment:
        """Return one of them. Raises NotFound."""
        return self._ask("GET", _path(endpoint_name, name), BatchDeployment)

    def delete(self, name: str, endpoint_name: str) -> None:
        """Forget a deployment. Its jobs stay. Raises NotFound."""
        self._transport.request("DELETE", _path(endpoint_name, name), idempotent=False)


def _path(endpoint: str, deployment: str = "") -> str:
    path = f"{BatchEndpoints.path}/{quote(endpoint, safe='')}"
    return f"{path}/deployments/{quote(deployment, safe='')}" if deployment else path
