"""Reads a submission: a job spec alone, or together with a zip of the code."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Final

from anyio.to_thread import run_sync
from starlette.requests import Request

from parallelrun_api.http.errors import BodyTooLarge, UnsupportedMediaType
from parallelrun_api.submission.forms import CONTENT, SubmissionForm
from parallelrun_core.intake.reading import Reading, read_job, read_text
from parallelrun_core.names.assets import Names
from parallelrun_core.spec import JobSpec, PipelineSpec, load_document, load_json

JSON_TYPE: Final = "application/json"
YAML_TYPES: Final = ("application/yaml", "text/yaml", "application/x-yaml")
FORM_TYPE: Final = "multipart/form-data"
MAX_SPEC_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SubmittedForm:
    """A submission, as it was sent."""

    reading: Reading
    code: IO[bytes] | None
    """A zip, or None when the spec names a folder."""
    sha256: str
    """Hash of the whole submission: it shows whether two are the same."""
    name: str = ""
    """The name by which its client knows the job, for which `${{name}}` stands in its texts; empty: its id."""

    @property
    def spec(self) -> JobSpec | PipelineSpec:
        return self.reading.spec


@dataclass(frozen=True, kw_only=True)
class ReceivedForm:
    """The body of a submission that is still to be parsed."""

    text: bytes
    load: Callable[[bytes], object]
    code: IO[bytes] | None
    sha256: str

    def parsed(self, names: Names | None = None) -> SubmittedForm:
        """The submission; reading a large document takes its time.

        Args:
            names: where names of assets are looked up.

        Raises:
            InvalidInput: it can't be accepted.
        """
        reading = read_text(lambda: self.load(self.text), lambda document: read_job(document, names=names))
        return SubmittedForm(reading=reading, code=self.code, sha256=self.sha256)

    def close(self) -> None:
        if self.code is not None:
            self.code.close()


async def receive_upload(request: Request, *, max_bytes: int, folder: Path) -> ReceivedForm:
    """Receive the body of a submission; a zip in it goes to a file on the volume of `folder`.

    Raises:
        UnsupportedMediaType, BodyTooLarge, InvalidInput: it can't be accepted.
    """
    kind = _media_type(request)
    if kind == FORM_TYPE:
        return await _receive_form(request, max_bytes, folder)
    _check_is_document(kind, "job", (JSON_TYPE, *YAML_TYPES, FORM_TYPE))
    text = b"".join([chunk async for chunk in _limited(request, min(max_bytes, MAX_SPEC_BYTES))])
    load = load_json if kind == JSON_TYPE else load_document
    return ReceivedForm(text=text, load=load, code=None, sha256=hashlib.sha256(text).hexdigest())


async def read_document(request: Request) -> object:
    """The content of a body that is a document, as YAML or JSON.

    Raises:
        UnsupportedMediaType, BodyTooLarge, InvalidInput: it can't be read.
    """
    kind = _media_type(request)
    _check_is_document(kind, "document", (JSON_TYPE, *YAML_TYPES))
    text = b"".join([chunk async for chunk in _limited(request, MAX_SPEC_BYTES)])
    return await run_sync(load_json if kind == JSON_TYPE else load_document, text)


async def read_document_and_files(
    request: Request, *, max_bytes: int, folder: Path, part: str = CONTENT
) -> tuple[object, IO[bytes] | None]:
    """A document, and the zip that came with it, if one did: a file on the volume of `folder`, for the caller to close.

    Args:
        part: what a form calls the zip.

    Raises:
        UnsupportedMediaType, BodyTooLarge, InvalidInput: it can't be read.
    """
    if _media_type(request) != FORM_TYPE:
        return await read_document(request), None
    form = SubmissionForm(request.headers["content-type"], max_spec_bytes=MAX_SPEC_BYTES, file_part=part)
    try:
        await form.read(_limited(request, max_bytes), folder)
        return await run_sync(load_document, form.spec_text()), form.code
    except BaseException:
        form.close()
        raise


def _check_is_document(kind: str, noun: str, accepted: tuple[str, ...]) -> None:
    if kind != JSON_TYPE and kind not in YAML_TYPES:
        raise UnsupportedMediaType(
            f"A {noun} can't be read from {kind or 'a body without a Content-Type'}.",
            headers={"Accept-Post": ", ".join(accepted)},
        )


async def _receive_form(request: Request, max_bytes: int, folder: Path) -> ReceivedForm:
    form = SubmissionForm(request.headers["content-type"], max_spec_bytes=MAX_SPEC_BYTES)
    try:
        await form.read(_limited(request, max_bytes), folder)
        return ReceivedForm(text=form.spec_text(), load=load_document, code=form.code, sha256=form.sha256())
    except BaseException:
        form.close()
        raise


def _media_type(request: Request) -> str:
    text = request.headers.get("content-type", "")
    if text in ("", JSON_TYPE):  # as from our own client: the parser of mail takes longer than all else here
        return text
    header = Message()
    header["content-type"] = text
    return header.get_content_type()


async def _limited(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    """The body, chunk by chunk.

    Raises:
        BodyTooLarge: as soon as it is known to be over the limit.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:19]) > max_bytes:
        raise BodyTooLarge(f"The body has {declared[:19]} bytes; at most {max_bytes:,} are accepted.")
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > max_bytes:
            raise BodyTooLarge(f"The body has more than {max_bytes:,} bytes.")
        yield chunk
