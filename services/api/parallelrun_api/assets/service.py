"""Makes, shows and archives the assets of a cluster for clients."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from parallelrun_api.people.access import Subject, not_owned
from parallelrun_api.people.person import CURRENT, seen_places
from parallelrun_core.answers.assets import Asset, AssetLabels, SitePlaces
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.assets.contents import keep_code, keep_zip
from parallelrun_core.assets.document import NewAsset, read_asset
from parallelrun_core.assets.kinds import model_of
from parallelrun_core.assets.resolving import names_in
from parallelrun_core.assets.site import Site, SiteNow
from parallelrun_core.datastores.document import datastore_catalog
from parallelrun_core.errors import CorruptLog, InvalidInput
from parallelrun_core.layout import blobstore_of
from parallelrun_core.names.assets import LATEST
from parallelrun_core.service import telemetry
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule, Places
from parallelrun_core.storage.stores import storage_of

log = telemetry.logger()

_SEND: Final = "multipart/form-data with the parts 'spec' and 'content'; the command line does that"


class AssetService:
    """The assets of a server. Safe to share between threads.

    Args:
        site: the site file that counts now, if there is one.
        check_seen: raises NotFound for the id of a job that the person of the request may not see.
    """

    def __init__(
        self,
        root: Path,
        places: Places,
        site: Callable[[], Path | None],
        *,
        check_seen: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._root = root
        self._catalog = Catalog(root)
        self._places = places
        self._site_file = SiteNow(site)
        self._datastores = datastore_catalog(root)
        self.names: Final = names_in(self._catalog, self._site, check_seen=check_seen)
        """Where documents of jobs look names up."""

    def _site(self) -> Site:
        """Return what the site file says, and where the default datastore is, unless it or an operator has defined
        that."""
        return self._site_file().with_default_datastore(blobstore_of(self._root), self._datastores.names())

    def create(
        self, kind: str, name: str, version: str, document: object, content: IO[bytes] | None
    ) -> tuple[Asset, bool]:
        """Make a version, durably; returns it, and whether it is new.

        Args:
            version: empty: the document's, else the next number.
            content: a zip of its files, if they were sent.

        Raises:
            InvalidInput: something is wrong with it, or jobs may not use what it names.
            Conflict: there is such a version with another content.
            NotAllowed: the asset is somebody else's. Their version of the same content is answered as it is: clients
                call code by its content, so several persons send the same.
        """
        person = CURRENT.get()
        owner = self._catalog.owner_of(kind, name)
        refusal = None if owner is None or person.may_change(owner) else not_owned(Subject("asset", name, kind), owner)
        try:
            new = self._new(kind, name, version, document, content)
        except InvalidInput:
            if refusal is not None:
                raise refusal from None
            raise
        if refusal is not None:
            if same := self._catalog.find_same(kind, new.name, new.version, new.content):
                return Asset.of(same), False
            raise refusal
        asset, is_new = self._catalog.add(
            kind, new.name, new.content, version=new.version, about=new.about, owner=person.owner
        )
        return Asset.of(asset), is_new

    def page(self, kind: str, *, after: str, limit: int, with_archived: bool) -> tuple[list[Asset], str | None]:
        """Some assets by name, each by its latest version; those whose files are damaged are left out, and logged."""
        names = [name for name in self._catalog.names(kind, with_archived=with_archived) if name > after]
        items = []
        for name in names[:limit]:
            try:
                latest = self._catalog.latest(kind, name, with_archived=with_archived)
            except CorruptLog as error:
                log.warning("asset_unreadable", type=kind, asset=name, error=error.message)
                continue
            if latest is not None:
                items.append(Asset.of(latest))
        return items, names[limit - 1] if len(names) > limit else None

    def versions(
        self, kind: str, name: str, *, after: str, limit: int, with_archived: bool
    ) -> tuple[list[Asset], str | None]:
        """Some versions of an asset, the newest first. Raises NotFound if there is no such asset."""
        version_names = self._catalog.ordered(kind, name, with_archived=with_archived)
        if not version_names:
            self._catalog.labelled(kind, name, LATEST)  # raises, if there is no such asset
        begin = next((index + 1 for index, each in enumerate(version_names) if each == after), 0)
        if after and not begin:
            raise InvalidInput.at("/query/page_token", f"there is no version {after[:50]!r} any more", "begin anew")
        chosen = version_names[begin : begin + limit]
        more = chosen[-1] if begin + limit < len(version_names) else None
        items = [self.get(kind, name, each) for each in chosen]
        return items, more

    def get(self, kind: str, name: str, version: str) -> Asset:
        """Return one version. Raises NotFound."""
        return Asset.of(self._catalog.get(kind, name, version))

    def labelled(self, kind: str, name: str, label: str) -> Asset:
        """The version that has a label. Raises NotFound."""
        return Asset.of(self._catalog.labelled(kind, name, label))

    def named(self, kind: str, text: str) -> Asset:
        """Return what a document means by a name, after the site file. Raises NotFound, InvalidInput."""
        return Asset.of(self.names.asset(kind, text))

    def labels(self, kind: str, name: str) -> AssetLabels:
        """All labels of an asset. Raises NotFound."""
        latest = self._catalog.labelled(kind, name, LATEST)
        return AssetLabels(labels={LATEST: latest.version, **self._catalog.labels(kind, name)})

    def set_label(self, kind: str, name: str, label: str, version: str) -> Asset:
        """Give a version a label. Raises NotFound, InvalidInput."""
        return Asset.of(self._catalog.set_label(kind, name, label, version))

    def remove_label(self, kind: str, name: str, label: str) -> None:
        """Take a label away. Raises NotFound, InvalidInput."""
        self._catalog.remove_label(kind, name, label)

    def set_archived(self, kind: str, name: str, version: str, *, is_archived: bool) -> Asset:
        """Archive or restore a version, or all of an asset; returns it. Raises NotFound."""
        self._catalog.set_archived(kind, name, version, is_archived=is_archived)
        return self.get(kind, name, version) if version else self.labelled(kind, name, LATEST)

    def places(self) -> SitePlaces:
        """Return what the site file says of places. Raises InvalidInput if it is wrong."""
        site = self._site()
        return SitePlaces(datastores=dict(site.datastores), locations=dict(site.locations))

    def _new(self, kind: str, name: str, version: str, document: object, content: IO[bytes] | None) -> NewAsset:
        """Return what is to be made, whose files are stored by now."""
        if kind == "code":
            return self._new_code(name, version, document, content)
        new = read_asset(kind, document, name=name, version=version)
        model = model_of(kind)
        new = replace(new, content=model.pinned(new.content, names_in(self._catalog, Site)))
        if model.has_files:
            return self._with_files(new, content)
        if content is not None:
            raise InvalidInput.at("", f"files were sent, and a {kind} has none of its own", "send its document alone")
        return new

    def _new_code(self, name: str, version: str, document: object, content: IO[bytes] | None) -> NewAsset:
        if not isinstance(document, dict):
            raise InvalidInput.at("", "the document of code is a mapping", "see docs/assets.md")
        if content is None:
            raise InvalidInput.at("", "the files of the code are missing", _SEND)
        content.seek(0)
        return read_asset("code", {**document, "snapshot": keep_code(self._root, content)}, name=name, version=version)

    def _with_files(self, new: NewAsset, content: IO[bytes] | None) -> NewAsset:
        """The asset with a copy of what was sent; or what it names, if jobs may read that."""
        path = new.content["path"]
        if content is not None:
            content.seek(0)
            stored = {"files": keep_zip(self._root, content, path), "file": path}
            fields = {key: value for key, value in new.content.items() if key != "path"} | stored
            return replace(new, content=fields)
        path = self.names.place(path)
        if not is_url(path) and not os.path.isabs(path):
            raise InvalidInput.at("/path", f"{path!r} is no absolute path, and nothing was sent with it", _SEND)
        storage, rule = storage_of(path), PathRule(self._root, seen_places(self._places))
        is_file = new.content.get("type") == "uri_file"
        trouble = storage.place_trouble(storage.split(path)[0], rule)
        if trouble is None and storage.is_near:
            trouble = storage.input_trouble(path, is_one_file=is_file, rule=rule)
        if trouble is not None:
            raise InvalidInput.at("/path", trouble.message, trouble.hint)
        return replace(new, content={**new.content, "path": path})
