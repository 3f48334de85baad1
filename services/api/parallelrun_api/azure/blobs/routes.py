"""Routes for the client's storage library: blobs with ranges and metadata, uploads at once or in blocks, lists."""

from __future__ import annotations

import os
from email.utils import formatdate
from typing import IO, Final
from xml.etree.ElementTree import ParseError

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from starlette.datastructures import Headers

from parallelrun_api.azure.answers import HANDS_OUT, FacadeRoute, NotSupported
from parallelrun_api.azure.auth import BLOBS
from parallelrun_api.azure.blobs import listing
from parallelrun_api.azure.blobs.names import OF_CODE, OF_OUTPUTS, OF_VERSIONS, UPLOADS, checked_blob, checked_container
from parallelrun_api.azure.blobs.places import open_blob
from parallelrun_api.azure.blobs.store import MAX_BODY_BYTES
from parallelrun_api.azure.facade import Facade, FacadeOf
from parallelrun_api.http.errors import BodyTooLarge, Forbidden, HttpError
from parallelrun_api.views.downloads import BYTES, ByteRange, Content, send
from parallelrun_core.errors import InvalidInput

router = APIRouter(prefix=BLOBS.rstrip("/"), include_in_schema=False, route_class=FacadeRoute)

_META: Final = "x-ms-meta-"
_MAX_BLOCK_LIST: Final = 8 << 20
_WRITE_AT_ONCE: Final = 1 << 20
_WRITABLE: Final = (UPLOADS, OF_VERSIONS)
"""Containers that can be written to, or what their names begin with: the others are views of jobs."""


@router.get("/{account}/{container}")
async def list_blobs(container: str, request: Request, facade: FacadeOf) -> Response:
    """The blobs of a container, by name, a few thousand on each page."""
    if request.query_params.get("comp") != "list":
        raise NotSupported("Of containers, only their blobs can be listed.")
    query = listing.ListingRequest.of(request.query_params)
    key = ("blobs", container, query)
    text = await facade.context.long_lists.run(key, lambda: listing.page(facade, checked_container(container), query))
    return Response(text, media_type="application/xml", headers={"Cache-Control": "no-store"})


@router.head("/{account}/{container}/{blob:path}")
@router.get("/{account}/{container}/{blob:path}", name="read_output", tags=[HANDS_OUT])
async def read_blob(container: str, blob: str, request: Request, facade: FacadeOf) -> Response:
    """A blob, a range of its bytes, or only its properties."""
    content = await run_sync(open_blob, facade, checked_container(container), checked_blob(blob))
    metadata = await run_sync(facade.blobs.metadata, container, blob)
    blob_headers = {"x-ms-blob-type": "BlockBlob", **{_META + key: value for key, value in metadata.items()}}
    if request.method == "HEAD":
        return Response(headers={**_properties(content), **blob_headers}, media_type=BYTES)
    wanted_range = ByteRange(range=request.headers.get("x-ms-range") or request.headers.get("range"))
    answer = send(content, blob.rpartition("/")[2], BYTES, wanted_range, facade.context.file_reads)
    answer.headers.update(blob_headers)
    return answer


@router.put("/{account}/{container}/{blob:path}", name="write_blob")
async def write_blob(container: str, blob: str, request: Request, facade: FacadeOf) -> Response:
    """A blob as a whole, a block, a list of blocks that become a blob, or metadata."""
    container, blob = checked_container(container), checked_blob(blob)
    if not container.startswith(_WRITABLE) or blob.startswith((OF_OUTPUTS, OF_CODE)):
        raise Forbidden("This place shows what jobs have written, or code of a version; it can't be written to.")
    await run_sync(facade.blobs.check_not_closed, container)
    match request.query_params.get("comp", ""):
        case "metadata":
            await run_sync(facade.blobs.set_metadata, container, blob, _metadata(request.headers))
            return _written(200)
        case "blocklist":
            await _commit(facade, container, blob, request)
        case "block":
            await _receive(facade, container, blob, request, block=request.query_params.get("blockid", ""))
        case "":
            await _receive(facade, container, blob, request)
        case other:
            raise NotSupported(f"PUT with comp={other[:40]!r} is not supported.")
    return _written(201)


async def _receive(facade: Facade, container: str, blob: str, request: Request, block: str | None = None) -> None:
    length = _declared_length(request)
    if block is None and request.headers.get("x-ms-blob-type", "BlockBlob") != "BlockBlob":
        raise NotSupported("Only block blobs can be written.")
    if request.headers.get("if-none-match") == "*" and facade.blobs.file(container, blob).exists():
        message = f"There is a blob {blob[:200]!r} already."
        raise AlreadyThere(message, headers={"x-ms-error-code": "BlobAlreadyExists"})
    await run_sync(facade.blobs.reserve, length)
    written = 0
    try:
        with facade.blobs.incoming() as file:
            await _write(file, request, length)
            if block is not None:
                await run_sync(facade.blobs.stage, container, blob, block, file)
            else:
                await run_sync(facade.blobs.put, container, blob, file)
            written = length
    finally:
        facade.blobs.release(length, written=written)
    if block is None and (metadata := _metadata(request.headers)):
        await run_sync(facade.blobs.set_metadata, container, blob, metadata)


def _declared_length(request: Request) -> int:
    """Return how long the body is, by what the request says.

    Raises:
        InvalidInput: it doesn't say.
        BodyTooLarge: it is too long.
    """
    declared = request.headers.get("content-length", "")
    if not declared.isdecimal() or len(declared) > 15 or "transfer-encoding" in request.headers:
        message = "the length of the body must be given, and nothing but that"
        raise InvalidInput.at("/header/content-length", message, "no Transfer-Encoding")
    length = int(declared)
    if length > MAX_BODY_BYTES:
        raise BodyTooLarge(f"The body has {length:,} bytes; at most {MAX_BODY_BYTES:,} are accepted at once.")
    return length


async def _write(file: IO[bytes], request: Request, length: int) -> None:
    """Write the body, as far as room is kept for it.

    Raises:
        BodyTooLarge: there is more.
    """
    buffer = bytearray()
    remaining_bytes = length
    async for chunk in request.stream():
        remaining_bytes -= len(chunk)
        if remaining_bytes < 0:
            raise BodyTooLarge(f"The body has more than the {length:,} bytes that were declared.")
        buffer += chunk
        if len(buffer) >= _WRITE_AT_ONCE:
            await run_sync(file.write, bytes(buffer))
            buffer.clear()
    await run_sync(file.write, bytes(buffer))


async def _commit(facade: Facade, container: str, blob: str, request: Request) -> None:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BLOCK_LIST:
            raise BodyTooLarge(f"A list of blocks has at most {_MAX_BLOCK_LIST:,} bytes.")
    try:
        blocks = await run_sync(listing.blocks_of, bytes(body))
    except ParseError as error:
        raise InvalidInput.at("body", "the list of blocks can't be read as XML") from error
    await run_sync(facade.blobs.commit, container, blob, blocks)
    if metadata := _metadata(request.headers):
        await run_sync(facade.blobs.set_metadata, container, blob, metadata)


def _metadata(headers: Headers) -> dict[str, str]:
    return {key.removeprefix(_META): value for key, value in headers.items() if key.startswith(_META)}


def _written(status: int) -> Response:
    now = formatdate(usegmt=True)
    return Response(status_code=status, headers={"ETag": f'"{os.urandom(8).hex()}"', "Last-Modified": now})


def _properties(content: Content) -> dict[str, str]:
    """Return what is told of a blob whose content isn't asked for. Closes it."""
    content.close()
    changed = formatdate(content.modified_ns / 1e9, usegmt=True)
    tag = f'"{content.modified_ns:x}-{content.size:x}"'
    return {"Content-Length": str(content.size), "ETag": tag, "Last-Modified": changed, "x-ms-creation-time": changed}


class AlreadyThere(HttpError, code="conflict", http_status=409):
    """There is such a blob already."""
