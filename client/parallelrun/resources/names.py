"""The names in a job's document: resolved by the site file, then by a server or this user's own assets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
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


def names_of(transport: Transport) -> NamesFor:
    """The names that a server knows, with the site file of this machine before its own."""
    return lambda folder: Lazily(lambda: _of_server(lambda: nullcontext(transport), folder))


def names_at(server: Callable[[], tuple[str, str]]) -> NamesFor:
    """Return the names of a server that is connected to only if a document has a name; looking it up may then raise
    ConnectionFailed.

    Args:
        server: its URL and token.
    """

    def opened() -> AbstractContextManager[Transport]:
        from parallelrun.http.transport import Transport

        return closing(Transport(*server()))

    return lambda folder: Lazily(lambda: _of_server(opened, folder))


def own_names(folder: Path) -> Lazily:
    """The names that this user's runs on this machine know."""
    return Lazily(lambda: _own(folder))


def _own(folder: Path) -> Resolver:
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


def _of_server(opened: Callable[[], AbstractContextManager[Transport]], folder: Path) -> Resolver:
    from parallelrun.resources.assets import Assets
    from parallelrun_core.assets.site import SiteNow, site_file

    own_site = SiteNow(lambda: site_file(folder))
    theirs: list[Site] = []

    def site() -> Site:
        if not theirs:
            with opened() as transport:
                theirs.append(_site_of(transport))
        return own_site().over(theirs[0])

    def known(kind: str, reference: Reference) -> names.Asset:
        with opened() as transport:
            return _asked(transport, kind, reference.text)

    def keep(source: Path | CodeSource, dockerfile: str) -> str:
        with opened() as transport:
            return Assets(transport, "component").send_code(source, dockerfile)

    def output_of(job_id: str, name: str) -> str:
        with opened() as transport:
            return _output_of(transport, job_id, name)

    return Resolver(known, site, keep_code=keep, output_of=output_of, own_site=own_site)


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


def _asked(transport: Transport, kind: str, text: str) -> names.Asset:
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
