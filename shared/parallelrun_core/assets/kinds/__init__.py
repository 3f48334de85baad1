"""The kinds of assets: one module each, named like the kind, with the class of its documents as `DOCUMENT`.

There is no list of the kinds: adding one is adding a module. Where names of assets are read (`core/names/assets.py`),
the kinds are the names of these modules.
"""

from __future__ import annotations

from importlib import import_module

from parallelrun_core.assets.definition import AssetDocument


def model_of(kind: str) -> type[AssetDocument]:
    model: type[AssetDocument] = import_module(f"{__name__}.{kind}").DOCUMENT
    return model
