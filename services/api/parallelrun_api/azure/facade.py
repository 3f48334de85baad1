"""The context of this facade's routes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, cast

from fastapi import Depends, Request

from parallelrun_api.azure.auth import PREFIX
from parallelrun_api.azure.streams import Streams

if TYPE_CHECKING:
    from parallelrun_api.azure.asset_store import AssetStore
    from parallelrun_api.azure.blobs.store import BlobStore
    from parallelrun_api.azure.names import NameStore
    from parallelrun_api.context import Context
    from parallelrun_api.http.token import Token

WORKSPACE: Final = (
    PREFIX + "/subscriptions/{subscription}/resourceGroups/{group}"
    "/providers/Microsoft.MachineLearningServices/workspaces/{workspace}"
)
READS: Final = "reads"
"""Tag of routes that change nothing, though their method is another one than GET."""
_SCOPE: Final = re.compile(
    r"/subscriptions/[^/]+/resourcegroups/[^/]+/providers/microsoft\.machinelearningservices/workspaces/[^/]+",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Facade:
    context: Context
    token: Token
    blobs: BlobStore
    asset_store: AssetStore
    names: NameStore
    streams: Streams = field(default_factory=Streams)


def _facade_of(request: Request) -> Facade:
    return cast(Facade, request.app.state.azure)


FacadeOf = Annotated[Facade, Depends(_facade_of)]


def own_url(request: Request) -> str:
    """The URL of this facade, as the client reached it: always with TLS, without which it sends no token."""
    return f"https://{request.headers.get('host', 'localhost')}{PREFIX}"


def scope_of(request: Request) -> str:
    """The workspace in the path of a request, as ids of things in it begin."""
    match = _SCOPE.search(request.url.path)
    return match[0] if match else ""
