"""The base of the client's resources: paths, pages, objects from answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from parallelrun.errors import ConnectionFailed
from parallelrun.http.transport import Transport

Model = TypeVar("Model")


def job_path(job_id: str, *parts: str) -> str:
    """The API's path of a job, or of something below it. Each part is quoted, so none can lead elsewhere."""
    return "/".join(["/v1/jobs", quote(job_id, safe=""), *(quote(part, safe="/") for part in parts)])


def as_model(answer: object, model: type[Model]) -> Model:
    """The object that an answer describes.

    Raises:
        ConnectionFailed: it has another shape, so the server is not a ParallelRun API.
    """
    try:
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
