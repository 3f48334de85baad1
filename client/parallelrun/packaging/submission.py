"""The parts of a job that are sent: its spec, its code in a zip, and what its submission is a part of."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from parallelrun_core.code.source import CodeSource, source_of
from parallelrun_core.computes.images import CONDITIONAL
from parallelrun_core.errors import UnsafePath
from parallelrun_core.names.assets import INCLUDES, stored_code
from parallelrun_core.names.computes import DOCKERFILE
from parallelrun_core.untrusted.paths import relative_parts

if TYPE_CHECKING:
    from parallelrun_core.intake.reading import Reading
    from parallelrun_core.spec import JobSpec, PipelineSpec

UPLOAD_TIMEOUT_S: Final = 300.0


def submission_headers(key: str, traceparent: str | None = None) -> dict[str, str]:
    """The headers of a submission.

    Args:
        key: its idempotency key.
        traceparent: the span to whose trace the job belongs; None: that of the variable `TRACEPARENT`, if it is set.
    """
    span = (os.environ.get("TRACEPARENT", "") if traceparent is None else traceparent).strip()
    is_sendable = span.isascii() and span.isprintable()
    return {"Idempotency-Key": key} | ({"traceparent": span} if span and is_sendable else {})


def without_its_code(
    spec: JobSpec | PipelineSpec, *, upload_code: bool = True
) -> tuple[dict[str, Any], dict[str, CodeSource]]:
    """The document of a job or a pipeline that is sent with a zip, and the code that is in the zip, by name.

    Args:
        upload_code: whether there is one; otherwise the server reads the code at the same paths.
    """
    document = spec.model_dump(mode="json", exclude_unset=True)
    if upload_code and document.get("type") == "pipeline":
        return with_code_in_zip(document)
    code, includes = document.get("code", ""), document.get(INCLUDES, ())
    if upload_code and (code or includes) and not stored_code(code):
        return {**document, "code": "", INCLUDES: []}, {"": source_of(code, includes)}
    return document, {}


def with_contexts_sent(document: dict[str, Any], send: Callable[[Path, str], str]) -> dict[str, Any]:
    """The document with the name of what was sent in place of each folder of which an image is built. A folder that is
    not there stays: the server says so, if it needs it.

    Args:
        send: sends a folder with this Dockerfile; returns its name.
    """
    if document.get("type") == "pipeline":
        from parallelrun_core.spec.pipeline_steps import with_steps

        return with_steps(document, lambda _, step: {**step, "job": with_contexts_sent(step["job"], send)})
    environment = document.get("environment") or {}
    build = environment.get("build")
    if not build or stored_code(build["path"]) or not Path(build["path"]).is_dir():
        return document
    sent = send(Path(build["path"]), build.get("dockerfile_path") or DOCKERFILE)
    return {**document, "environment": {**environment, "build": {**build, "path": sent}}}


def notes_on(reading: Reading, server_notes: Sequence[str]) -> list[str]:
    """The notes on a document: those of its reader, of which the server confirms some, and those of the server alone.

    The server received the spec and not the document, so it doesn't know all of them, nor where in the document.

    Args:
        server_notes: the notes of the server.
    """
    messages = {note.message for note in reading.notes}
    confirmed = {message for message in messages if any(each.endswith(message) for each in server_notes)}
    return [
        *(str(note) for note in reading.notes if note.message not in CONDITIONAL or note.message in confirmed),
        *(each for each in server_notes if not any(each.endswith(message) for message in confirmed)),
    ]


@contextmanager
def body_of(document: Mapping[str, Any], sources: Mapping[str, CodeSource]) -> Iterator[Callable[[], dict[str, Any]]]:
    """Return what makes the body of a request, as often as it is sent."""
    if not sources:
        yield lambda: {"json": document}
        return
    from parallelrun.packaging.code import zip_sources

    with zip_sources(sources) as archive:
        yield form_of(document, "code", archive)


def form_of(document: Mapping[str, Any], part: str, archive: IO[bytes]) -> Callable[[], dict[str, Any]]:
    """Return what makes the body of a request with a document and a zip, as often as it is sent.

    Args:
        part: what the form calls the zip.
    """

    def body() -> dict[str, Any]:
        archive.seek(0)
        return {
            "data": {"spec": json.dumps(document)},
            "files": {part: (f"{part}.zip", archive, "application/zip")},
        }

    return body


def with_code_in_zip(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, CodeSource]]:
    """The fields of a pipeline whose steps name folders of a zip, and the code of this machine that each is.

    Steps with the same code name the same folder; those without code still name none.
    """
    from parallelrun_core.spec.pipeline_steps import with_steps

    names: dict[CodeSource, str] = {}

    def named(_: tuple[str, ...], step: dict[str, Any]) -> dict[str, Any]:
        code, includes = step["job"].get("code", ""), step["job"].get(INCLUDES, ())
        if not (code or includes) or stored_code(code):
            return step
        source = source_of(code, includes)
        name = names.get(source) or names.setdefault(source, _new_name(code, set(names.values())))
        return {**step, "job": {**step["job"], "code": name, **({INCLUDES: []} if includes else {})}}

    changed = with_steps(document, named)
    return changed, {name: source for source, name in names.items()}


def _new_name(code: str, used_names: set[str]) -> str:
    """A name for a folder that says what it is, whatever letter case means where the zip is unpacked."""
    try:
        (name,) = relative_parts(Path(code or "code").resolve().name)
    except (UnsafePath, ValueError):
        name = "code"
    folded = {each.casefold() for each in used_names}
    numbered = (f"{name}-{number}" for number in range(2, len(used_names) + 3))
    return name if name.casefold() not in folded else next(each for each in numbered if each.casefold() not in folded)
