"""The assets of a cluster, or of a user, as files below its root folder.

    assets/<type>/<name>/
        versions/<version>.json     written once: what the version is
        about/<version>.json        its description, tags and properties, which may change
        labels/<label>              the version that has this label
        archived/<version>          there if the version is archived
        archived.all                there if all of it is
        made/<hash>.<n>             the version that was chosen for an output of a job (registering.py)

Every fact is a document of its own, written once or replaced whole: so any number of processes can write, and readers
need no lock.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from parallelrun_core.assets.contents import contents_of
from parallelrun_core.documents.codecs import RecordCodec
from parallelrun_core.documents.collection import Documents, names_hint
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.schema import SCHEMA
from parallelrun_core.documents.store import DocumentMissing
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.layout import asset_store
from parallelrun_core.names.assets import LATEST, Asset, UnknownAsset, UnknownVersion, code_called, kinds
from parallelrun_core.names.patterns import ASSET_NAME, in_words

_NAME: Final = re.compile(ASSET_NAME)
_VERSIONS: Final = "versions"
_ABOUT: Final = "about"
_LABELS: Final = "labels"
_ARCHIVED: Final = "archived"
_ALL_ARCHIVED: Final = "archived.all"
_CHOSEN: Final = "made"
_MOST_TRIES: Final = 1000
_SHOWN: Final = 20


class _Head(msgspec.Struct, kw_only=True, frozen=True):
    """A version without its content, which may be large."""

    schema: int = SCHEMA
    number: int
    """Its place among the versions of the asset, by when they were created."""
    created: float
    owner: str = ""
    """The person who made it."""


class _Version(_Head, kw_only=True, frozen=True):
    content: dict[str, Any]


_Record = TypeVar("_Record", _Head, _Version)


class About(msgspec.Struct, kw_only=True, frozen=True):
    """The description of a version, which may change."""

    schema: int = SCHEMA
    description: str = ""
    tags: dict[str, str] = {}
    properties: dict[str, str] = {}


NOTHING_SAID: Final = About()


class Catalog:
    """The assets below a root folder. Safe to share between threads and processes.

    Methods raise OSError when the volume can't be read or written, and CorruptLog when a file of it is damaged.

    Args:
        is_own: they are this user's own, without a server, which says how to add to them.
    """

    def __init__(self, root: Path, *, is_own: bool = False) -> None:
        self.root: Final = root
        self._option = " --local" if is_own else ""
        folder = asset_store(root)
        self._store: Final = FileStore(folder.parent, folder.name)

    def names(self, kind: str, *, with_archived: bool = False) -> list[str]:
        """The names of the assets of a type, in order."""
        names = [name for name in self._store.child(checked_type(kind)).children() if _NAME.fullmatch(name)]
        return [name for name in names if with_archived or not self.is_archived(kind, name)]

    def versions(self, kind: str, name: str, *, with_archived: bool = False) -> list[Asset]:
        """The versions of an asset, the one that was created last first; none if there is no such asset."""
        ordered = self.ordered(kind, name, with_archived=with_archived)
        return [self._asset(kind, name, each, self._read(kind, name, each)) for each in ordered]

    def ordered(self, kind: str, name: str, *, with_archived: bool = False) -> list[str]:
        """The names of these versions; no more than one of them is in memory at a time."""
        heads = [(each, self._read_as(_Head, kind, name, each)) for each in self._versions(kind, name)]
        heads.sort(key=lambda pair: (pair[1].number, pair[1].created, pair[0]), reverse=True)
        return [each for each, _ in heads if with_archived or not self._is_archived(kind, name, each)]

    def latest(self, kind: str, name: str, *, with_archived: bool = False) -> Asset | None:
        """The version that was created last; None if there is none, or all are archived."""
        ordered = self.ordered(kind, name, with_archived=with_archived)
        return self.get(kind, name, ordered[0]) if ordered else None

    def get(self, kind: str, name: str, version: str) -> Asset:
        """Return one version, archived or not.

        Raises:
            UnknownAsset, UnknownVersion: there is none; says what there is.
        """
        self._check_known(kind, name)
        if not _NAME.fullmatch(version):
            raise self._unknown_version(kind, name, version)
        return self._asset(kind, name, version, self._read(kind, name, version))

    def labelled(self, kind: str, name: str, label: str) -> Asset:
        """The version that has a label; `latest` is the one that was created last and is not archived.

        Raises:
            UnknownAsset, UnknownVersion: there is none; says what there is.
        """
        self._check_known(kind, name)
        if label == LATEST:
            asset = self.latest(kind, name) or self.latest(kind, name, with_archived=True)
            if asset is None:
                raise self._unknown_version(kind, name, label)
            return asset
        try:
            version = self._label(kind, name, checked_name(label, "label"))
        except DocumentMissing as error:
            labels = ", ".join([LATEST, *sorted(self.labels(kind, name))])
            raise UnknownVersion.called(label, f"the {kind} {name!r} has no such label", f"it has {labels}") from error
        return self.get(kind, name, version)

    def labels(self, kind: str, name: str) -> dict[str, str]:
        """The version that each label stands for; without `latest`."""
        return {label: self._label(kind, name, label) for label in self._of(kind, name).child(_LABELS).names()}

    def add(
        self,
        kind: str,
        name: str,
        content: dict[str, Any],
        *,
        version: str = "",
        about: About = NOTHING_SAID,
        owner: str = "",
    ) -> tuple[Asset, bool]:
        """Make a version, durably; returns it, and whether it is new.

        Args:
            version: its name; by default the number after the highest one.
            owner: the person who makes it.

        Raises:
            InvalidInput: a name is no name.
            Conflict: there is such a version with another content: a version never changes.
        """
        checked_name(name, "name")
        for _ in range(_MOST_TRIES):
            chosen = checked_name(version, "version") if version else self.next_version(kind, name)
            is_new = self._write(kind, name, chosen, content, owner)
            if not is_new and not version:
                continue  # somebody else was faster, and has taken the number
            record = self._read(kind, name, chosen)
            if record.content != content:
                raise self._changed(kind, name, chosen, record.content, content)
            if about != NOTHING_SAID:
                self._about(kind, name).put(chosen, about)
            return self._asset(kind, name, chosen, record), is_new
        raise Conflict(f"Too many versions of {kind} {name!r} are being created.")

    def find_same(self, kind: str, name: str, version: str, content: dict[str, Any]) -> Asset | None:
        """Return this version if it is there and has this content."""
        if version not in self._versions(kind, name):
            return None
        record = self._read(kind, name, version)
        return self._asset(kind, name, version, record) if record.content == content else None

    def set_label(self, kind: str, name: str, label: str, version: str) -> Asset:
        """Give a version a label, which another one may have had.

        Raises:
            UnknownAsset, UnknownVersion: there is no such version.
            InvalidInput: the label is none, or `latest`, which nobody gives.
        """
        if checked_name(label, "label") == LATEST:
            raise InvalidInput.at("/label", "latest is always the version that was created last", "take another label")
        asset = self.get(kind, name, version)
        self._of(kind, name).child(_LABELS).replace(label, version.encode())
        return asset

    def remove_label(self, kind: str, name: str, label: str) -> None:
        """Take a label away. Raises UnknownVersion, UnknownAsset."""
        self.labelled(kind, name, label)
        if label == LATEST:
            raise InvalidInput.at("/label", "latest is always the version that was created last")
        with suppress(DocumentMissing):
            self._of(kind, name).child(_LABELS).remove(label)

    def set_archived(self, kind: str, name: str, version: str, *, is_archived: bool) -> None:
        """Hide a version, or all of an asset, from lists and from `latest`; or show it again. Whoever names it finds it
        all the same.

        Args:
            version: empty: all of them, and those to come.

        Raises:
            UnknownAsset, UnknownVersion: there is none.
        """
        if version:
            self.get(kind, name, version)
        self._check_known(kind, name)
        asset = self._of(kind, name)
        store, mark = (asset.child(_ARCHIVED), version) if version else (asset, _ALL_ARCHIVED)
        if is_archived:
            store.replace(mark, b"")
            return
        with suppress(DocumentMissing):
            store.remove(mark)

    def is_archived(self, kind: str, name: str) -> bool:
        return self._of(kind, name).exists(_ALL_ARCHIVED)

    def owner_of(self, kind: str, name: str) -> str | None:
        """The person who made the first version of an asset; None: there is no such asset."""
        heads = [self._read_as(_Head, kind, name, each) for each in self._versions(kind, name)]
        return min(heads, key=lambda head: head.number).owner if heads else None

    def next_version(self, kind: str, name: str) -> str:
        """The number after the highest one; others may take it."""
        numbers = [int(each) for each in self._versions(kind, name) if each.isdecimal() and len(each) < 19]
        return str(max(numbers, default=0) + 1)

    def chosen_versions(self, kind: str, name: str) -> FileStore:
        """The versions that were chosen for outputs of jobs. Raises InvalidInput for what is no name."""
        return self._of(checked_type(kind), checked_name(name, "name")).child(_CHOSEN)

    def hint(self, kind: str, missing_name: str) -> str:
        """Return what to do about a name that isn't there."""
        create_hint = f"make one with `parallelrun {kind} create{self._option} -f FILE` (docs/assets.md)"
        return names_hint(missing_name, self.names(kind, with_archived=True), create_hint)

    def _of(self, kind: str, name: str) -> FileStore:
        return self._store.child(kind).child(name)

    def _label(self, kind: str, name: str, label: str) -> str:
        return self._of(kind, name).child(_LABELS).read(label).data.decode("ascii")

    def _about(self, kind: str, name: str) -> Documents[About]:
        return Documents(self._of(kind, name).child(_ABOUT), RecordCodec(About), noun="description of version")

    def _versions_as(self, record_type: type[_Record], kind: str, name: str) -> Documents[_Record]:
        store = self._of(kind, name).child(_VERSIONS)
        return Documents(store, RecordCodec(record_type), noun=f"version of {kind} {name!r}")

    def _versions(self, kind: str, name: str) -> list[str]:
        checked_type(kind)
        return self._versions_as(_Head, kind, name).names() if _NAME.fullmatch(name) else []

    def _write(self, kind: str, name: str, version: str, content: dict[str, Any], owner: str) -> bool:
        versions = self._versions_as(_Version, kind, name)
        if version in versions:
            return False
        numbers = (self._read_as(_Head, kind, name, each).number for each in self._versions(kind, name))
        number = max(numbers, default=0) + 1
        record = _Version(number=number, created=time.time(), owner=owner, content=content)
        return versions.put_if_absent(version, record)

    def _read(self, kind: str, name: str, version: str) -> _Version:
        return self._read_as(_Version, kind, name, version)

    def _read_as(self, record_type: type[_Record], kind: str, name: str, version: str) -> _Record:
        record = self._versions_as(record_type, kind, name).find(version)
        if record is None:
            raise self._unknown_version(kind, name, version)
        return record

    def _asset(self, kind: str, name: str, version: str, record: _Version) -> Asset:
        about = self._about(kind, name).find(version) or NOTHING_SAID
        content = dict(record.content)
        if "snapshot" in content:
            content["path"] = code_called(content["snapshot"])
        elif "files" in content:
            content["path"] = str(contents_of(self.root, content["files"]) / content["file"])
        return Asset(
            type=kind,
            name=name,
            version=version,
            content=content,
            created=record.created,
            owner=record.owner,
            description=about.description,
            tags=about.tags,
            properties=about.properties,
            is_archived=self._is_archived(kind, name, version),
        )

    def _is_archived(self, kind: str, name: str, version: str) -> bool:
        return self._of(kind, name).child(_ARCHIVED).exists(version) or self.is_archived(kind, name)

    def _check_known(self, kind: str, name: str) -> None:
        if not self._versions(kind, name):
            raise UnknownAsset.called(name, f"there is no {kind} of this name", self.hint(kind, name))

    def _unknown_version(self, kind: str, name: str, version: str) -> UnknownVersion:
        versions = self.ordered(kind, name, with_archived=True)
        listed = ", ".join(versions[:_SHOWN]) + (" …" if len(versions) > _SHOWN else "")
        return UnknownVersion.called(version, f"the {kind} {name!r} has no such version", f"it has {listed}")

    @staticmethod
    def _changed(kind: str, name: str, version: str, old: dict[str, Any], new: dict[str, Any]) -> Conflict:
        fields = ", ".join(sorted(field for field in old.keys() | new.keys() if old.get(field) != new.get(field)))
        return Conflict(
            f"Version {version} of {kind} {name!r} exists with another content ({fields}), and a version never "
            "changes: leave the version out for the next one."
        )


def checked_type(kind: str) -> str:
    """The type, if there is such a type of assets. Raises InvalidInput."""
    if kind not in kinds():
        raise InvalidInput.at("/type", f"{kind[:50]!r} is not a type of assets", f"one of {', '.join(kinds())}")
    return kind


def checked_name(text: str, field: str) -> str:
    """A name that is safe as the name of a file. Raises InvalidInput."""
    if not _NAME.fullmatch(text):
        raise InvalidInput.at(f"/{field}", f"{text[:80]!r} is not the {field} of an asset", in_words(ASSET_NAME))
    return text
