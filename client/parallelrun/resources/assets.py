"""Assets: names for data, models, environments, components and code, of a server or of this user's runs here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import quote

from parallelrun.errors import ApiError
from parallelrun.http.transport import Transport
from parallelrun.models import Asset
from parallelrun.packaging.submission import form_of
from parallelrun.resources.resource import Resource

if TYPE_CHECKING:
    from parallelrun_core.assets.document import NewAsset
    from parallelrun_core.assets.inlining import KeepCode
    from parallelrun_core.code.source import CodeSource

_PATH: Final = "/v1/assets"
_PAGE: Final = 200
_UPLOAD_TIMEOUT_S: Final = 600.0
_TAKEN: Final = ("not_allowed", "conflict")
"""Codes of errors of who sends other content under a name that somebody has."""

Definition = Mapping[str, Any] | str | Path


class Assets(Resource):
    """The assets of one type of a server: `client.data`, `client.models`, …"""

    def __init__(self, transport: Transport, kind: str) -> None:
        super().__init__(transport)
        self._kind = kind

    def create(
        self, definition: Definition, *, name: str = "", changes: Mapping[str, Any] = {}, upload: bool = True
    ) -> Asset:
        """Make a version, durably; again with the same version and content, it is that version.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON, as Azure ML has them. Relative
                paths start from the folder of the file, or from the current one.
            name: what it is called, if the document doesn't say.
            changes: fields to set in the document.
            upload: send the file or folder of this machine that `path` names: the version has a copy then. Otherwise
                the server reads it where it is. URLs are never copied.

        Raises:
            InvalidInput: something is wrong with it. Nothing was made.
            InvalidRequest: the server refuses it, as for a place that jobs may not use.
            Conflict: there is such a version with another content.
        """
        new = read_definition(self._kind, definition, self.send_code, name=name, changes=changes)
        document = new.document()
        if new.local is None or not upload:
            return self._send(new, document, nullcontext)
        from parallelrun.packaging.code import zip_files

        local = new.local
        return self._send(new, {**document, "path": local.name}, lambda: zip_files(local))

    def versions(self, name: str, *, archived: bool = False) -> list[Asset]:
        """The versions of one, the one that was created last first. Raises NotFound."""
        return list(self._all(_path(self._kind, name, "versions"), Asset, limit=_PAGE, archived=archived))

    def list(self, *, archived: bool = False) -> list[Asset]:
        """All of them by name, each by the version that was created last.

        Args:
            archived: also those that are archived.
        """
        return list(self._all(_path(self._kind), Asset, limit=_PAGE, archived=archived))

    def get(self, name: str, version: str = "", *, label: str = "") -> Asset:
        """Return one version: this one, or that with a label, by default `latest`. Raises NotFound."""
        path = _path(self._kind, name, "versions", version)
        if not version:
            path = _path(self._kind, name, "labels", label or "latest")
        return self._ask("GET", path, Asset)

    def archive(self, name: str, version: str = "") -> None:
        """Hide a version, or all of it, from lists and from `latest`. Who names it finds it all the same.

        Raises:
            NotFound: there is none.
        """
        self._set_archived(name, version, "archive")

    def restore(self, name: str, version: str = "") -> None:
        """Show again what was archived. Raises NotFound."""
        self._set_archived(name, version, "restore")

    def set_label(self, name: str, label: str, version: str) -> Asset:
        """Let a label stand for a version. Raises NotFound."""
        return self._ask("PUT", _path(self._kind, name, "labels", label), Asset, {"version": version})

    def remove_label(self, name: str, label: str) -> None:
        """Forget a label. Raises NotFound."""
        self._transport.request("DELETE", _path(self._kind, name, "labels", label), idempotent=False)

    def _set_archived(self, name: str, version: str, verb: str) -> None:
        parts = ("versions", version) if version else ()
        self._transport.request("POST", f"{_path(self._kind, name, *parts)}:{verb}", idempotent=True)

    def _send(
        self, new: NewAsset, document: dict[str, Any], pack: Callable[[], AbstractContextManager[IO[bytes] | None]]
    ) -> Asset:
        parts = (new.name, "versions", new.version) if new.version else (new.name, "versions")
        with pack() as content:
            return self._ask(
                "PUT" if new.version else "POST",
                _path(new.kind, *parts),
                Asset,
                document if content is None else None,
                body=form_of(document, "content", content) if content is not None else None,
                idempotent=bool(new.version),  # without one, asking again makes another
                read_timeout_s=_UPLOAD_TIMEOUT_S,
            )

    def send_code(self, source: Path | CodeSource, dockerfile: str = "") -> str:
        """Send the code of a component; returns what its document has for it. It is called by its content, or, if
        somebody has taken that name for other code, by what nobody foretells.

        Args:
            dockerfile: what is sent is what an image is built of, by this Dockerfile in the folder.
        """
        from secrets import token_hex

        from parallelrun.packaging.code import zip_context, zip_sources
        from parallelrun_core.code.source import CodeSource

        if isinstance(source, Path):
            pack = (
                partial(zip_context, source, dockerfile)
                if dockerfile
                else partial(zip_sources, {"": CodeSource(source)})
            )
        else:
            pack = partial(zip_sources, {"": source})
        with pack() as content:
            digest = sha256()
            while chunk := content.read(1 << 20):
                digest.update(chunk)

            def send(name: str) -> Asset:
                path, body = _path("code", f"code-{name}", "versions", "1"), form_of({}, "content", content)
                return self._ask("PUT", path, Asset, body=body, read_timeout_s=_UPLOAD_TIMEOUT_S)

            try:
                code = send(digest.hexdigest()[:32])
            except ApiError as error:
                if error.code not in _TAKEN:
                    raise
                code = send(token_hex(16))
        return str(code.content["path"])


def read_definition(
    kind: str,
    definition: Definition,
    keep_code: KeepCode,
    *,
    name: str = "",
    changes: Mapping[str, Any] = {},
) -> NewAsset:
    """Return what a document, or a file with one, says of an asset.

    Raises:
        InvalidInput: it can't be read, or something is wrong with it.
    """
    from parallelrun_core.assets.document import read_asset, read_asset_file

    if isinstance(definition, Mapping):
        document = {**definition, **changes}
        return read_asset(kind, document, folder=Path.cwd(), keep_code=keep_code, name=name)
    return read_asset_file(kind, Path(definition), keep_code=keep_code, name=name, changes=changes)


def _path(*parts: str) -> str:
    return "/".join([_PATH, *(quote(part, safe="") for part in parts)])
