"""The assets of this user's runs on this machine: made once, and known to each run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from parallelrun.models import Asset
from parallelrun.resources.assets import Definition, read_definition
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.assets.contents import keep_copy, keep_named
from parallelrun_core.assets.kinds import model_of
from parallelrun_core.assets.registering import add_made
from parallelrun_core.assets.resolving import names_in
from parallelrun_core.assets.site import Site
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.names.assets import LATEST, kinds
from parallelrun_core.names.assets import Asset as Known
from parallelrun_core.service.state_folder import state_folder
from parallelrun_core.storage.location import is_url


class OwnAssets:
    """The assets of this user: as `parallelrun.resources.assets.Assets`, without a server.

    Raises:
        RuntimeError: the user has no home folder.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._root = state_folder()
        self._catalog = Catalog(self._root, is_own=True)

    def create(
        self, definition: Definition, *, name: str = "", changes: Mapping[str, Any] = {}, upload: bool = True
    ) -> Asset:
        """Make a version; its files are copied into this user's state folder, or stay where they are.

        Raises:
            InvalidInput: something is wrong with it.
            Conflict: there is such a version with another content.
        """
        new = read_definition(self._kind, definition, partial(keep_named, self._root), name=name, changes=changes)
        content = model_of(self._kind).pinned(new.content, names_in(self._catalog, Site))
        if new.local is not None and upload:
            stored = {"files": keep_copy(self._root, new.local), "file": new.local.name}
            content = {key: value for key, value in content.items() if key != "path"} | stored
        asset, _ = self._catalog.add(self._kind, new.name, content, version=new.version, about=new.about)
        return Asset.of(asset)

    def versions(self, name: str, *, archived: bool = False) -> list[Asset]:
        """The versions of one, the one that was created last first. Raises NotFound."""
        self._catalog.labelled(self._kind, name, LATEST)
        return [Asset.of(asset) for asset in self._catalog.versions(self._kind, name, with_archived=archived)]

    def list(self, *, archived: bool = False) -> list[Asset]:
        """All of them by name, each by the version that was created last."""
        asset_names = self._catalog.names(self._kind, with_archived=archived)
        latest = (self._catalog.latest(self._kind, name, with_archived=archived) for name in asset_names)
        return [Asset.of(asset) for asset in latest if asset is not None]

    def get(self, name: str, version: str = "", *, label: str = "") -> Asset:
        """Return one version: this one, or that with a label, by default `latest`. Raises NotFound."""
        if version:
            return Asset.of(self._catalog.get(self._kind, name, version))
        return Asset.of(self._catalog.labelled(self._kind, name, label or LATEST))

    def archive(self, name: str, version: str = "") -> None:
        """Hide a version, or all of it, from lists and from `latest`. Raises NotFound."""
        self._catalog.set_archived(self._kind, name, version, is_archived=True)

    def restore(self, name: str, version: str = "") -> None:
        """Show again what was archived. Raises NotFound."""
        self._catalog.set_archived(self._kind, name, version, is_archived=False)

    def set_label(self, name: str, label: str, version: str) -> Asset:
        """Let a label stand for a version. Raises NotFound, InvalidInput."""
        return Asset.of(self._catalog.set_label(self._kind, name, label, version))

    def remove_label(self, name: str, label: str) -> None:
        """Forget a label. Raises NotFound, InvalidInput."""
        self._catalog.remove_label(self._kind, name, label)


def take_over(root: Path) -> tuple[list[str], list[str]]:
    """Make what a run has registered in its cluster this user's own, before that cluster is gone: of files in it, a
    copy. Returns what jobs call them; and for people, why others could not be taken."""
    asset_ids: list[str] = []
    refused = []
    theirs = Catalog(root)
    for kind in kinds():
        for name in theirs.names(kind):
            for asset in reversed(theirs.versions(kind, name)):
                if "made_by" not in asset.content:
                    continue
                try:
                    asset_ids.append(_take(kind, asset, root))
                except ParallelRunError as error:
                    output = asset.content["made_by"]["output"]
                    refused.append(f"the output {output!r} is not registered as {name!r}: {error.message}")
    return asset_ids, refused


def _take(kind: str, asset: Known, root: Path) -> str:
    """The name of the asset among this user's own. Raises InvalidInput, Conflict."""
    own_catalog = Catalog(state_folder())
    content, path = dict(asset.content), Path(asset.content["path"])
    if not is_url(str(path)) and path.is_relative_to(root):
        del content["path"]
        content |= {"files": keep_copy(own_catalog.root, path), "file": path.name}
    return add_made(own_catalog, kind, asset.name, content).id
