"""The things besides jobs that a sweep prunes: snapshots, files of assets, versions of assets, steps for reuse, and
uploaded files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.layout import (
    asset_files,
    asset_store,
    blobstore_of,
    code_store,
    finished_steps,
    listed,
    uploads_of,
)
from parallelrun_core.names.assets import Asset, kinds
from parallelrun_core.retention.policy import DAY_S, LEAST_AGE_S, JobFacts, StoredFile, plan_files
from parallelrun_core.retention.references import References
from parallelrun_core.retention.rules import Rules

_SNAPSHOT: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Paths that go, by kind."""

    snapshots: Sequence[Path] = ()
    asset_files: Sequence[Path] = ()
    asset_versions: Sequence[Path] = ()
    steps: Sequence[Path] = ()
    uploads: Sequence[Path] = ()
    blobs: Sequence[Path] = ()

    @property
    def folders(self) -> list[Path]:
        """Folders that are set aside first."""
        return [*self.snapshots, *self.asset_files]

    @property
    def files(self) -> list[Path]:
        return [*self.asset_versions, *self.steps, *self.uploads, *self.blobs]

    def by_kind(self) -> Iterator[tuple[str, Sequence[Path]]]:
        for kind in ("snapshots", "asset_files", "asset_versions", "steps", "uploads", "blobs"):
            yield kind, getattr(self, kind)


def others_going(
    rules: Rules, references: References, *, hashes: AbstractSet[str], jobs: Sequence[JobFacts], now: float
) -> Inventory:
    """Choose what goes of everything that is no job.

    Args:
        hashes: the snapshots that anything names.
        now: seconds since the epoch.
    """
    root = references.root
    age_s = max(rules.keep_snapshots_days * DAY_S, LEAST_AGE_S)
    is_swept = bool(rules.keep_snapshots_days)
    return Inventory(
        snapshots=list(_unnamed(code_store(root), hashes, now - age_s)) if is_swept else (),
        asset_files=list(_unnamed(asset_files(root), hashes, now - age_s)) if is_swept else (),
        asset_versions=list(_asset_versions(root, rules, references, now)),
        steps=_steps(root, rules, {job.job_id for job in jobs}, now),
        uploads=_uploaded(uploads_of(root), references, rules.keep_uploads_days, rules.keep_uploads_bytes, now),
        blobs=_uploaded(blobstore_of(root), references, rules.keep_blobs_days, rules.keep_blobs_bytes, now),
    )


def _unnamed(store: Path, hashes: AbstractSet[str], before: float) -> Iterator[Path]:
    """Yield the snapshots of a store that nothing names, and that nobody has added since some time."""
    for name in listed(store):
        if _SNAPSHOT.fullmatch(name) and name not in hashes:
            with suppress(FileNotFoundError):
                path = store / name
                added = path.with_name(f"{name}.files")  # written anew whenever somebody adds it
                if (added if added.exists() else path).stat().st_mtime < before:
                    yield path


def _steps(root: Path, rules: Rules, jobs: AbstractSet[str], now: float) -> list[Path]:
    """Choose the steps that are no longer offered for reuse: the old ones, the many, and those whose job is gone."""
    gone, others = [], []
    for path in _files(finished_steps(root)):
        with suppress(FileNotFoundError):
            job_id = path.name.partition(".")[0]
            written = path.stat().st_mtime
            if job_id not in jobs and now - written >= LEAST_AGE_S:
                gone.append(path)
            else:
                others.append(StoredFile(name=str(path), bytes=1, written=written))
    return gone + [
        Path(name) for name in plan_files(others, days=rules.keep_steps_days, most_bytes=rules.keep_steps, now=now)
    ]


def _uploaded(store: Path, references: References, days: float, most_bytes: int, now: float) -> list[Path]:
    """Choose the files that go of those that users have brought, and that nothing names."""
    if not days and not most_bytes:
        return []
    files, named_bytes = [], 0
    for path in _files(store):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if references.names_file(path):
                named_bytes += status.st_size
            else:
                files.append(StoredFile(name=str(path), bytes=status.st_size, written=status.st_mtime))
    free_bytes = max(most_bytes - named_bytes, 1) if most_bytes else 0
    return [Path(name) for name in plan_files(files, days=days, most_bytes=free_bytes, now=now)]


def _asset_versions(root: Path, rules: Rules, references: References, now: float) -> Iterator[Path]:
    """Yield the documents of versions that go: archived ones by age, others by number; never the latest, one with a
    label, or one that something names."""
    if not rules.keep_asset_versions and not rules.keep_assets_days:
        return
    catalog = Catalog(root)
    for kind in kinds():
        for name in catalog.names(kind, with_archived=True):
            with suppress(ParallelRunError, msgspec.ValidationError):  # what can't be read stays
                labelled = set(catalog.labels(kind, name).values())
                for number, asset in enumerate(catalog.versions(kind, name, with_archived=True)):
                    age_s = now - asset.created
                    is_old = rules.keep_assets_days and asset.is_archived and age_s >= rules.keep_assets_days * DAY_S
                    is_over = rules.keep_asset_versions and number >= rules.keep_asset_versions
                    is_free = number > 0 and asset.version not in labelled and not _is_named(asset, references)
                    if is_free and (is_old or is_over) and age_s >= LEAST_AGE_S:
                        yield asset_store(root) / kind / name / "versions" / f"{asset.version}.json"


def _is_named(asset: Asset, references: References) -> bool:
    content = asset.content
    at_places = (content.get("snapshot"), content.get("files"), content.get("path"))
    if any(references.names_elsewhere(str(place)) for place in at_places if place):
        return True
    names = (f"{asset.name}:{asset.version}", f"{asset.name}/versions/{asset.version}", f"{asset.name}@")
    return references.names_text(*names)


def _files(folder: Path) -> Iterator[Path]:
    for current, _, names in os.walk(folder):
        for name in names:
            if name[0] != ".":
                yield Path(current, name)
