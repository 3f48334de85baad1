"""Outputs of a job that has completed become assets, once, whoever says so and however often."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.documents.store import DocumentExists
from parallelrun_core.errors import Conflict, ParallelRunError
from parallelrun_core.folder.disk_trouble import may_pass
from parallelrun_core.names.assets import MODEL_TYPES, Asset
from parallelrun_core.spec.fields import Output
from parallelrun_core.storage.location import is_url

_MOST_TRIES: Final = 1000


def register_outputs(
    root: Path,
    job_id: str,
    outputs: Mapping[str, Output],
    paths: Mapping[str, str],
    generation: int = 0,
    *,
    owner: str = "",
) -> tuple[list[Asset], list[str]]:
    """Make assets of those outputs of a job that name one. Again, for the same generation, it makes nothing more.

    Args:
        paths: where each output is.
        generation: the one in which the job has completed: another one has made something else.
        owner: the person whose job it is.

    Returns:
        The assets, and why others could not be made, for people.

    Raises:
        OSError: the volume can't be written for now.
    """
    assets, refused = [], []
    for name, output in outputs.items():
        if output.asset is None:
            continue
        subject = f"The output {name!r} is not registered as {output.asset.name!r}"
        if not is_url(paths[name]) and not os.path.exists(paths[name]):
            refused.append(f"{subject}: nothing was written there.")
            continue
        kind = "model" if output.asset.type in MODEL_TYPES else "data"
        maker: dict[str, Any] = {"job": job_id, "output": name}
        maker |= {"version": output.asset.version} if output.asset.version else {}
        maker |= {"generation": generation} if generation else {}
        content = {"type": output.asset.type, "path": paths[name], "made_by": maker}
        try:
            assets.append(add_made(Catalog(root), kind, output.asset.name, content, owner=owner))
        except ParallelRunError as error:
            refused.append(f"{subject}: {error.message}")
        except OSError as error:
            if may_pass(error):
                raise
            refused.append(f"{subject}: {error}.")
    return assets, refused


def add_made(catalog: Catalog, kind: str, name: str, content: dict[str, Any], *, owner: str = "") -> Asset:
    """The version for an output: the one that its job asks for, else the one that was chosen for it first.

    Args:
        owner: the person whose job made it.

    Raises:
        Conflict: there is such a version with another content.
    """
    if version := content["made_by"].get("version"):
        return catalog.add(kind, name, content, version=version, owner=owner)[0]
    for attempt in range(_MOST_TRIES):
        chosen = _chosen(catalog, kind, name, content, attempt)
        with suppress(Conflict):  # somebody else has made it since
            return catalog.add(kind, name, content, version=chosen, owner=owner)[0]
    raise Conflict(f"Too many versions of {kind} {name!r} are being created.")


def _chosen(catalog: Catalog, kind: str, name: str, content: dict[str, Any], attempt: int) -> str:
    """The version that is to be this output's: whoever asks for the same one, also after another has died, gets the
    same answer."""
    made_by = content["made_by"]
    again = f".{made_by['generation']}" if "generation" in made_by else ""
    maker = f"{made_by['job']}{again}/{made_by['output']}"
    chosen = catalog.chosen_versions(kind, name)
    key = f"{hashlib.sha256(maker.encode()).hexdigest()}.{attempt}"
    with suppress(DocumentExists):
        if not chosen.exists(key):
            chosen.create(key, catalog.next_version(kind, name).encode())
    return chosen.read(key).data.decode("ascii")
