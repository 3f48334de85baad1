"""The names in a job's document: resolved by the site file, then by a server or this user's own assets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from parallelrun_core.assets.resolving import Lazily, Resolver, names_in
from parallelrun_core.errors import NotFound
from parallelrun_core.names import assets as names
from parallelrun_core.names.assets import Reference

if TYPE_CHECKING:
    from parallelrun.http.transport import Transport
    from parallelrun.job_file.reading import NamesFor
    from parallelrun_core.assets.site import Site
    from parallelrun_core.code.source import CodeSource

_NOT_THERE = 404


def resolver_over(transport: Transport) -> NamesFor:
    """Resolve names on a server, with the site file of this machine before its own."""
    return lambda folder: Lazily(lambda: _ServerNames(lambda: nullcontext(transport), folder).resolver())


def resolver_at(server: Callable[[], tuple[str, str]]) -> NamesFor:
    """Resolve names on a server that is connected to only if a document has a name; that may raise ConnectionFailed.

    Args:
        server: its URL and token.
    """

    def connect() -> AbstractContextManager[Transport]:
        from parallelrun.http.transport import Transport

        return closing(Transport(*server()))

    return lambda folder: Lazily(lambda: _ServerNames(connect, folder).resolver())


def local_resolver(folder: Path) -> Lazily:
    """Resolve names in what this user's runs on this machine know."""
    return Lazily(lambda: _local_resolver(folder))


def _local_resolver(folder: Path) -> Resolver:
    from parallelrun_core.assets.catalog import Catalog
    from parallelrun_core.assets.site import SiteNow, site_file
    from parallelrun_core.datastores.document import datastore_catalog
    from parallelrun_core.layout import blobstore_of, code_store
    from parallelrun_core.service.state_folder import state_folder

    root = state_folder()
    site_now, datastores = SiteNow(lambda: site_file(folder)), datastore_catalog(root)

    def site() -> Site:
        # Not in the folder of a run's own cluster, which goes with the run: later runs read what earlier ones wrote.
        return site_now().with_default_datastore(blobstore_of(root), datastores.names())

    return names_in(Catalog(root, is_own=True), site, code_at=lambda snapshot: str(code_store(root) / snapshot))


class _ServerNames:
    """The names that a server resolves, each through a transport that is opened for the question.

    Args:
        folder: that of the document; its site file comes before the server's.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[Transport]], folder: Path) -> None:
        from parallelrun_core.assets.site import SiteNow, site_file

        self._connect = connect
        self._local_site = SiteNow(lambda: site_file(folder))

    def resolver(self) -> Resolver:
        return Resolver(
            self._asset, self._site, keep_code=self._send_code, output_of=self._output, own_site=self._local_site
        )

    @cached_property
    def _server_site(self) -> Site:
        with self._connect() as transport:
            return _site_of(transport)

    def _site(self) -> Site:
        return self._local_site().over(self._server_site)

    def _asset(self, kind: str, reference: Reference) -> names.Asset:
        with self._connect() as transport:
            return _resolve_asset(transport, kind, reference.text)

    def _send_code(self, source: Path | CodeSource, dockerfile: str) -> str:
        from parallelrun.resources.assets import Assets

        with self._connect() as transport:
            return Assets(transport, "component").send_code(source, dockerfile)

    def _output(self, job_id: str, name: str) -> str:
        with self._connect() as transport:
            return _output_of(transport, job_id, name)


def _site_of(transport: Transport) -> Site:
    from parallelrun.errors import ApiError
    from parallelrun_core.assets.site import Site

    try:
        answer = transport.request("GET", "/v1/site", idempotent=True)
    except ApiError as error:
        if error.status != _NOT_THERE:
            raise
        return Site()  # a server of an earlier release
    return Site(datastores=answer.get("datastores", {}), locations=answer.get("locations", {}))


def _output_of(transport: Transport, job_id: str, name: str) -> str:
    """The path or the URL of an output of a job of a server. Raises NotFound."""
    from parallelrun_core.ids import is_job_id

    if not is_job_id(job_id):
        raise NotFound(f"There is no job {job_id[:80]!r}.")
    answer = transport.request("GET", f"/v1/jobs/{job_id}", idempotent=True)
    for output in answer.get("outputs", ()):
        if output["name"].lower() == name.lower() and output["path"]:
            return str(output["path"])
    raise NotFound(f"Job {job_id[:80]} has no output {name[:80]!r}, or nobody has made it.")


def _resolve_asset(transport: Transport, kind: str, text: str) -> names.Asset:
    """The asset that a server knows by a name.

    Raises:
        UnknownAsset, UnknownVersion: it knows none.
    """
    from parallelrun.models import Asset
    from parallelrun.resources.resource import as_model

    try:
        answer = transport.request("GET", f"/v1/assets/{kind}:resolve", params={"name": text}, idempotent=True)
    except NotFound as error:
        unknown = names.UnknownVersion if error.code == names.UnknownVersion.code else names.UnknownAsset
        raise unknown(error.message, problems=error.problems) from error
    asset = as_model(answer, Asset)
    return names.Asset(type=kind, name=asset.name, version=asset.version, content=asset.content)
