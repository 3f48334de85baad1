"""Requests that make a job, once for each key, and documents that come with a zip."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Annotated

from anyio.to_thread import run_sync
from fastapi import Depends, Header, Request, Response

from parallelrun_api.context import Context
from parallelrun_api.http.answers import encoded, encoded_answer
from parallelrun_api.submission.forms import CODE
from parallelrun_api.submission.idempotency import checked_key
from parallelrun_api.submission.submissions import Accepted
from parallelrun_api.submission.upload import read_document_and_files
from parallelrun_api.views.presenters import etag
from parallelrun_core.answers.jobs import Job


async def _key_of(
    idempotency_key: Annotated[
        str | None,
        Header(description="For at least a day, repeating a request with its key gives the same job.", max_length=200),
    ] = None,
) -> str:
    return checked_key(idempotency_key)


IdempotencyKey = Annotated[str, Depends(_key_of)]


async def accepted(context: Context, key: str, accept: Callable[[str], Accepted]) -> Response:
    """Return the answer with a job that is accepted now, or was accepted by an earlier request with this key.

    Args:
        accept: accepts a job for a key, durably, in a thread. It is not yet registered.
    """

    def submitted() -> Job:
        job = accept(key)
        return context.jobs.submitted(job.job_id, new=context.registrar.register_here(job))

    async with context.key_locks.hold(key):
        job = await run_sync(submitted)
    text = encoded(job)
    return encoded_answer(text, 202, {"Location": job.links.self, "ETag": etag(job, text)})


@asynccontextmanager
async def document_and_files(
    request: Request, context: Context, folder: Path, part: str = CODE
) -> AsyncIterator[tuple[object, IO[bytes] | None]]:
    """A document, and the zip that came with it, if one did: a file on the volume of `folder`, closed at the end.

    Args:
        part: what a form calls the zip.

    Raises:
        UnsupportedMediaType, BodyTooLarge, InvalidInput: it can't be read.
    """
    most = context.settings.max_body_bytes
    document, files = await read_document_and_files(request, max_bytes=most, folder=folder, part=part)
    try:
        yield document, files
    finally:
        if files is not None:
            files.close()
