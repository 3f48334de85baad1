"""The base of the client's resources: paths, pages, objects from answers, and definitions with their verbs."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from parallelrun.errors import ConnectionFailed, InvalidInput
from parallelrun.http.transport import Transport

Model = TypeVar("Model")

_MODELS_LOCK: Final = threading.Lock()

Definition = Mapping[str, Any] | str | Path
"""A document, or the path of a file with it, as YAML or JSON."""


def job_path(job_id: str, *parts: str) -> str:
    """The API's path of a job, or of something below it. Each part is quoted, so none can lead elsewhere."""
    return "/".join(["/v1/jobs", quote(job_id, safe=""), *(quote(part, safe="/") for part in parts)])


def as_model(answer: object, model: type[Model]) -> Model:
    """The object that an answer describes.

    Raises:
        ConnectionFailed: it has another shape, so the server is not a ParallelRun API.
    """
    try:
        # msgspec crashes where two threads are the first to use the same type.
        with _MODELS_LOCK:
            return msgspec.convert(answer, model, strict=False)
    except msgspec.ValidationError as error:
        raise ConnectionFailed(f"The server's answer can't be understood: {error}.") from error


def pages(
    transport: Transport,
    path: str,
    model: type[Model],
    params: Mapping[str, str] | None = None,
    *,
    call: Callable[[Callable[[], Any]], Any] = lambda ask: ask(),
    on_page: Callable[[dict[str, Any]], object] = lambda _: None,
) -> Iterator[Model]:
    """All items of a list, fetched page by page as they are needed; `call` makes the request for each page.

    Args:
        on_page: called with each page, for what else is in it.
    """
    query = dict(params or {})
    while True:
        page = call(partial(transport.request, "GET", path, params=query, idempotent=True))
        if not isinstance(page, dict) or not isinstance(page.get("items"), list):
            raise ConnectionFailed(f"The server's answer to {path} is not a list.")
        on_page(page)
        yield from (as_model(item, model) for item in page["items"])
        if not page.get("next_page_token"):
            return
        query["page_token"] = page["next_page_token"]


class Definitions(Generic[Model]):
    """Definitions of one kind on a server, which users make once, by a name, for many jobs.

    A subclass names their path and their model, and has `create`, which reads documents of this kind.
    """

    path: str
    model: type[Model]

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> builtins.list[Model]:
        """Return all of them, by name."""
        return list(pages(self._transport, self.path, self.model))

    def get(self, name: str) -> Model:
        """Return one of them. Raises NotFound."""
        return as_model(self._transport.request("GET", self.url(name), idempotent=True), self.model)

    def delete(self, name: str) -> None:
        """Forget one of them. Jobs that were made by it stay.

        Raises:
            NotFound: there is none of this name.
            Conflict: a job that has not ended needs it.
        """
        self._transport.request("DELETE", self.url(name), idempotent=False)

    def url(self, name: str) -> str:
        """Return the path of one of them."""
        return f"{self.path}/{quote(name, safe='')}"

    def _put(self, name: str, document: object) -> Model:
        answer = self._transport.request("PUT", self.url(name), body=lambda: {"json": document}, idempotent=True)
        return as_model(answer, self.model)


def document_of(definition: Definition) -> object:
    """Return the document of a definition.

    Raises:
        InvalidInput: its file can't be read.
    """
    from parallelrun_core.untrusted.document import load_document

    if isinstance(definition, Mapping):
        return dict(definition)
    try:
        return load_document(Path(definition).read_bytes())
    except OSError as error:
        raise InvalidInput.at("", f"{definition}: {error.strerror or error}") from error
