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
from parallelrun.http.transport import Body, Transport

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


class Resource:
    """The requests for one subject of a server, whose answers become objects."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _ask(
        self,
        method: str,
        path: str,
        model: type[Model],
        document: object = None,
        *,
        idempotent: bool = True,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float | None = None,
        **params: object,
    ) -> Model:
        """Return the answer to a request.

        Args:
            document: the body as JSON; None: it has none, or `body` makes it.
            idempotent: it may be repeated when its answer was lost.
            read_timeout_s: the longest silence while the answer is waited for; None: that of all requests.
            params: of its query, as `_query` takes them.
        """
        answer = self._transport.request(
            method,
            path,
            idempotent=idempotent,
            params=_query(params) or None,
            headers=headers,
            body=body if document is None else lambda: {"json": document},
            read_timeout_s=read_timeout_s,
        )
        return as_model(answer, model)

    def _all(self, path: str, model: type[Model], **params: object) -> Iterator[Model]:
        """All items of a list, fetched page by page as they are needed; `params` as `_query` takes them."""
        return pages(self._transport, path, model, _query(params))


def _query(params: Mapping[str, object]) -> dict[str, str]:
    """The parameters of a query, without those that are None or False."""
    texts = {name: "true" if value is True else str(value) for name, value in params.items()}
    return {name: text for name, text in texts.items() if params[name] is not None and params[name] is not False}


class NamedThings(Resource, Generic[Model]):
    """Things of one kind that a server has by their names. A subclass names the path and the model."""

    path: str
    model: type[Model]

    def list(self) -> builtins.list[Model]:
        """Return all of them, by name."""
        return list(self._all(self.path, self.model))

    def url(self, name: str) -> str:
        """Return the path of one of them."""
        return f"{self.path}/{quote(name, safe='')}"

    def _remove(self, name: str) -> None:
        self._transport.request("DELETE", self.url(name), idempotent=False)


class Definitions(NamedThings[Model]):
    """Definitions of one kind on a server, which users make once, by a name, for many jobs.

    A subclass has `create`, which reads documents of this kind.
    """

    def get(self, name: str) -> Model:
        """Return one of them. Raises NotFound."""
        return self._ask("GET", self.url(name), self.model)

    def delete(self, name: str) -> None:
        """Forget one of them. Jobs that were made by it stay.

        Raises:
            NotFound: there is none of this name.
            Conflict: a job that has not ended needs it.
        """
        self._remove(name)

    def _put(self, name: str, document: object) -> Model:
        return self._ask("PUT", self.url(name), self.model, document)


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
