"""Finds what a name in a document stands for: what the site file says, else what the catalog has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.assets.contents import keep_code
from parallelrun_core.assets.document import read_asset, read_asset_file
from parallelrun_core.assets.names import (
    Asset,
    Reference,
    UnknownAsset,
    code_called,
    reference_of,
    stored_code,
)
from parallelrun_core.assets.site import Site
from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.layout import code_store

_MAP_IT: Final = "say in the site file what stands for it here (docs/assets.md)"


class Resolver:
    """The names that a cluster, or a user, knows. Safe to share between threads.

    Args:
        catalog: where assets are.
        site: what the site file says now; it may raise InvalidInput.
        keeps_names_of_code: whether code is named as whoever accepts jobs knows it, and not by its folder.
    """

    def __init__(self, catalog: Catalog, site: Callable[[], Site] = Site, *, keeps_names_of_code: bool = True) -> None:
        self._catalog = catalog
        self._site = site
        self._keeps_names_of_code = keeps_names_of_code

    def asset(self, kind: str, text: str) -> Asset:
        """The asset of this type that a text names.

        Raises:
            UnknownAsset, UnknownVersion: there is none; says what there is.
            InvalidInput: the text is no name, or the site file is wrong.
            OSError, CorruptLog: the catalog can't be read.
        """
        reference = reference_of(text)
        if reference is None or reference.type not in ("", kind):
            raise InvalidInput.at("", f"{text!r} is not the name of a {kind}", "as in azureml:NAME:VERSION")
        stand_in = self._site().stand_in(kind, reference)
        if stand_in is not None:
            return self._standing_in(kind, reference, stand_in)
        return self._known(kind, reference)

    def place(self, text: str) -> str:
        """The location that stands for another one here; mostly the same. Raises InvalidInput if the site file is
        wrong."""
        snapshot = stored_code(text)
        if snapshot:
            return text if self._keeps_names_of_code else str(code_store(self._catalog.root) / snapshot)
        return self._site().place(text) if ":" in text else text

    def _known(self, kind: str, reference: Reference) -> Asset:
        if reference.registry:
            message = f"the registry {reference.registry!r} is one of Azure ML's, and can't be asked"
            raise UnknownAsset.called(reference.text, message, _MAP_IT)
        if reference.version:
            return self._catalog.get(kind, reference.name, reference.version)
        return self._catalog.labelled(kind, reference.name, reference.label)

    def _standing_in(self, kind: str, asked: Reference, value: Any) -> Asset:
        """The asset that the site file names, or one that it describes by itself."""
        if isinstance(value, str) and (local := reference_of(value)) is not None:
            return self._known(kind, local)
        content: dict[str, Any]
        if kind in ("data", "model"):
            content = {"path": value}
        elif isinstance(value, dict):
            content = read_asset(kind, value, folder=self._site().folder, name=asked.name).content
        else:
            content = read_asset_file(kind, Path(value), keep_code=self._keep_code, name=asked.name).content
        return Asset(type=kind, name=asked.name, version=asked.version or asked.label, content=content)

    def _keep_code(self, folder: Path) -> str:
        return code_called(keep_code(self._catalog.root, folder))
