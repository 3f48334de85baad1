"""Names for data, models, environments, components and code."""

from __future__ import annotations

from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import Path, Query, Request, Response

from parallelrun_api.context import Context, Ctx, access_check
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PageToken, page_answer
from parallelrun_api.models import Kind, LabelRequest
from parallelrun_api.routes.responses import document_body, zip_form
from parallelrun_api.routes.router import Operations
from parallelrun_api.routes.submitting import document_and_files
from parallelrun_api.submission.forms import CONTENT
from parallelrun_core.answers.assets import Asset, AssetLabels, AssetPage, SitePlaces
from parallelrun_core.layout import asset_files
from parallelrun_core.names.patterns import ASSET_NAME

router = Operations("assets", about="Names for data, models, environments, components and code.")

_EXAMPLE_YAML: Final = """\
type: uri_folder
path: /srv/images
description: All of them
"""
_DOCUMENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "As Azure ML's YAML of such an asset; see docs/assets.md. `name` and `version` may be left out.",
}
_BODY: Final = document_body(
    _DOCUMENT,
    "A document, or a form of a document and a zip of its files.",
    example=("data", _EXAMPLE_YAML),
    form=zip_form(
        "content",
        "A document, whose `path` is a name in the zip.",
        "A zip with one file or folder; of code, with what is in its folder.",
    ),
)
KindOf = Annotated[Kind, Path(description="Type of assets.", examples=["data"])]
Name = Annotated[str, Path(description="Name of an asset.", pattern=ASSET_NAME, examples=["images"])]
Version = Annotated[str, Path(description="One of its versions.", pattern=ASSET_NAME, examples=["3"])]
Label = Annotated[str, Path(description="One of its labels.", pattern=ASSET_NAME, examples=["stable"])]
Archived = Annotated[bool, Query(description="Also those that are archived.")]


@router.operation("GET /assets/{kind:part}", "List assets", AssetPage, (404, 429))
async def list_assets(
    kind: KindOf, context: Ctx, limit: Limit = DEFAULT_LIMIT, page_token: PageToken = "", archived: Archived = False
) -> Response:
    """The assets of a type by name, each by the version that was created last."""
    return await page_answer(
        context.job_lists,
        AssetPage,
        ("assets", kind, archived),
        lambda after, most: context.assets.page(kind, after=after, limit=most, with_archived=archived),
        limit=limit,
        page_token=page_token,
    )


@router.operation("GET /assets/{kind:part}:resolve", "Find what a name stands for", Asset, (404,), reads="assets")
def resolve_asset(
    kind: KindOf,
    context: Ctx,
    name: Annotated[str, Query(description="As a job's document has it.", examples=["azureml:images@latest"])],
) -> Response:
    """The asset that a document means: by what the server's site file says, else by its own assets."""
    return json_answer(context.assets.named(kind, name))


@router.operation(
    "GET /assets/{kind:part}/{asset:part}/versions", "List versions", AssetPage, (404, 429), reads="assets"
)
async def list_asset_versions(
    kind: KindOf,
    asset: Name,
    context: Ctx,
    *,
    limit: Limit = DEFAULT_LIMIT,
    page_token: PageToken = "",
    archived: Archived = False,
) -> Response:
    """The versions of an asset, the one that was created last first."""
    return await page_answer(
        context.job_lists,
        AssetPage,
        ("versions", kind, asset, archived),
        lambda after, most: context.assets.versions(kind, asset, after=after, limit=most, with_archived=archived),
        limit=limit,
        page_token=page_token,
    )


@router.operation(
    "POST /assets/{kind:part}/{asset:part}/versions",
    "Make the next version",
    Asset,
    (400, 403, 404, 409, 413, 415),
    "It is made, durably.",
    status=201,
    openapi_extra=_BODY,
)
async def create_asset(kind: KindOf, asset: Name, request: Request, context: Ctx) -> Response:
    """Make a version whose name is in the document, or else the number after the highest one."""
    created, is_new = await _created(context, request, kind, asset, "")
    return json_answer(created, 201 if is_new else 200)


@router.operation(
    "PUT /assets/{kind:part}/{asset:part}/versions/{version:part}",
    "Make a version",
    Asset,
    (400, 403, 404, 409, 413, 415),
    "It was made before, with the same content. What is said of it is said anew.",
    others={201: {"model": Asset, "description": "It is made, durably."}},
    openapi_extra=_BODY,
    access=access_check(makes_own=True),
)
async def put_asset(kind: KindOf, asset: Name, version: Version, request: Request, context: Ctx) -> Response:
    """Make a version of this name. A version never changes: one that is there with another content is left as it is,
    and the request refused (409)."""
    created, is_new = await _created(context, request, kind, asset, version)
    return json_answer(created, 201 if is_new else 200)


@router.operation(
    "GET /assets/{kind:part}/{asset:part}/versions/{version:part}", "Get a version", Asset, (404,), reads="assets"
)
def get_asset(kind: KindOf, asset: Name, version: Version, context: Ctx) -> Response:
    """Return one version, archived or not."""
    return json_answer(context.assets.get(kind, asset, version))


@router.operation("GET /assets/{kind:part}/{asset:part}/labels", "List labels", AssetLabels, (404,))
def list_asset_labels(kind: KindOf, asset: Name, context: Ctx) -> Response:
    """The labels of an asset. `latest` is the version that was created last and is not archived."""
    return json_answer(context.assets.labels(kind, asset))


@router.operation(
    "GET /assets/{kind:part}/{asset:part}/labels/{label:part}",
    "Get the version with a label",
    Asset,
    (404,),
    reads="assets",
)
def get_asset_by_label(kind: KindOf, asset: Name, label: Label, context: Ctx) -> Response:
    """The version that a label stands for now."""
    return json_answer(context.assets.labelled(kind, asset, label))


@router.operation("PUT /assets/{kind:part}/{asset:part}/labels/{label:part}", "Label a version", Asset, (400, 403, 404))
def put_asset_label(kind: KindOf, asset: Name, label: Label, body: LabelRequest, context: Ctx) -> Response:
    """Let a label stand for a version, and for no other one any more. `latest` can't be given."""
    return json_answer(context.assets.set_label(kind, asset, label, body.version))


@router.operation(
    "DELETE /assets/{kind:part}/{asset:part}/labels/{label:part}",
    "Remove a label",
    None,
    (403, 404),
    "It stands for nothing any more.",
)
def delete_asset_label(kind: KindOf, asset: Name, label: Label, context: Ctx) -> Response:
    """Forget a label; the version stays."""
    context.assets.remove_label(kind, asset, label)
    return no_content()


@router.operation("POST /assets/{kind:part}/{asset:part}:archive", "Archive an asset", Asset, (403, 404))
def archive_asset(kind: KindOf, asset: Name, context: Ctx) -> Response:
    """Hide an asset, with all versions, those to come too, from lists. Who names it finds it all the same."""
    return json_answer(context.assets.set_archived(kind, asset, "", is_archived=True))


@router.operation("POST /assets/{kind:part}/{asset:part}:restore", "Restore an asset", Asset, (403, 404))
def restore_asset(kind: KindOf, asset: Name, context: Ctx) -> Response:
    """Show an archived asset again; versions that were archived by themselves stay so."""
    return json_answer(context.assets.set_archived(kind, asset, "", is_archived=False))


@router.operation(
    "POST /assets/{kind:part}/{asset:part}/versions/{version:part}:archive", "Archive a version", Asset, (403, 404)
)
def archive_asset_version(kind: KindOf, asset: Name, version: Version, context: Ctx) -> Response:
    """Hide a version from lists and from `latest`."""
    return json_answer(context.assets.set_archived(kind, asset, version, is_archived=True))


@router.operation(
    "POST /assets/{kind:part}/{asset:part}/versions/{version:part}:restore", "Restore a version", Asset, (403, 404)
)
def restore_asset_version(kind: KindOf, asset: Name, version: Version, context: Ctx) -> Response:
    """Show an archived version again."""
    return json_answer(context.assets.set_archived(kind, asset, version, is_archived=False))


@router.operation("GET /site", "Get what stands for foreign places", SitePlaces)
def get_site(context: Ctx) -> Response:
    """Return which datastores and URLs of other people's documents stand for which places here, by the server's site
    file."""
    return json_answer(context.assets.places())


async def _created(context: Context, request: Request, kind: str, name: str, version: str) -> tuple[Asset, bool]:
    async with document_and_files(request, context, asset_files(context.settings.root), CONTENT) as (document, files):
        return await run_sync(context.assets.create, kind, name, version, document, files)
