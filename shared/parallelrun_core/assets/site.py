"""The site file: what other people's documents name, and what stands for it here.

    datastores:                                   # where the paths of a datastore begin
      workspaceblobstore: /srv/blobs
    locations:                                    # what URIs begin with, and where that is here
      https://example.blob.core.windows.net/public/: /srv/public/
    data:                                         # `models` likewise: a location, or an asset of here
      azureml:diabetes:*: /srv/diabetes
    environments:                                 # an asset of here, a file, or the environment itself
      azureml://registries/azureml/environments/sklearn-1.5: azureml:sklearn@latest
    images:                                       # the same, for environments that are built of an image
      mcr.microsoft.com/azureml/openmpi*: azureml:sklearn@latest
    components:                                   # an asset of here, or a file
      azureml://registries/azureml/components/*: components/theirs.yml

`*` stands for anything. A name without a version stands for all of them. The first entry that fits counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.names.assets import CODE, LATEST, Reference, kinds, reference_of, section_of
from parallelrun_core.problems import At, Problems
from parallelrun_core.spec.problems import line_of, lines_of
from parallelrun_core.storage.location import LOCAL, datastore_of, is_url, location_of
from parallelrun_core.storage.supported import absolute_path, supported_path
from parallelrun_core.untrusted.document import load_document
from parallelrun_core.untrusted.paths import relative_parts

FILE_NAME: Final = "parallelrun-site.yml"
VARIABLE: Final = "PARALLELRUN_SITE"
DEFAULT_DATASTORE: Final = "workspaceblobstore"
"""What documents of Azure ML call the datastore that every workspace has. A server has one, too, unless its site file
or its operator says that another place has this name."""

_PLACES: Final = ("datastores", "locations")
_IMAGES: Final = "images"


@dataclass(frozen=True)
class Site:
    file: Path | None = None
    datastores: Mapping[str, str] = field(default_factory=dict)
    locations: Mapping[str, str] = field(default_factory=dict)
    assets: Mapping[str, list[tuple[Reference, Any]]] = field(default_factory=dict)
    """By type: names, and what stands for them."""
    images: Mapping[str, Any] = field(default_factory=dict)
    """Names of images, and the environments that stand for those which are built of them."""

    @property
    def folder(self) -> Path | None:
        return self.file.absolute().parent if self.file is not None else None

    def place(self, text: str) -> str:
        """The location that stands for another one; the same if none does.

        Raises:
            UnsafePath: it leaves its datastore.
        """
        name = datastore_of(location_of(text).path) if self.datastores else ""
        if name in self.datastores:
            rest = location_of(text).path.partition("/paths/")[2]
            if ".." in rest.split("/"):
                relative_parts(rest)
            return _joined(self.datastores[name], rest)
        for beginning, here in self.locations.items():
            if text.startswith(beginning):
                return here + text[len(beginning) :]
        return text

    def over(self, other: Site) -> Site:
        """Return what this one says, and where it says nothing of a place, what another one does."""
        return Site(
            self.file,
            {**other.datastores, **self.datastores},
            {**self.locations, **other.locations},
            self.assets,
            self.images,
        )

    def with_default_datastore(self, folder: Path, datastores: Container[str]) -> Site:
        """Return this one with a folder as the default datastore, unless it says where that is, or it is among those
        that are defined."""
        if DEFAULT_DATASTORE in datastores:
            return self
        return self.over(Site(datastores={DEFAULT_DATASTORE: str(folder)}))

    def stand_in_for_image(self, image: str) -> Any:
        """Return what stands for an environment with this image; None if nothing does."""
        return next((value for named, value in self.images.items() if fnmatchcase(image, named)), None)

    def stand_in(self, kind: str, reference: Reference) -> Any:
        """Return what stands for the name of an asset; None if nothing does."""
        return next((value for named, value in self.assets.get(kind, ()) if _fits(named, reference)), None)


def read_site(file: Path) -> Site:
    """Return what a site file says.

    Raises:
        InvalidInput: it can't be read, or entries are wrong, each with its line.
    """
    try:
        text = file.read_bytes()
    except OSError as error:
        raise InvalidInput.at("", f"the site file {file} can't be read: {error.strerror or error}") from error
    lines: dict[str, int] = {}
    try:
        document = load_document(text)
        lines = lines_of(text)
        return _read(document, file)
    except InvalidInput as error:

        def located(problem: Problem) -> Problem:
            line = line_of(problem.pointer, lines)
            return Problem(
                pointer=problem.pointer,
                message=problem.message,
                hint=problem.hint,
                place=f"{file}:{line}" if line else str(file),
            )

        error.replace_problems(located)
        raise


def site_file_named(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The site file that a variable names; None if none does."""
    named = environment.get(VARIABLE)
    return Path(named) if named else None


def site_file(folder: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The site file that counts: the one that a variable names, else one in this folder; None if there is none."""
    if (named := site_file_named(environment)) is not None:
        return named
    beside = (folder or Path.cwd()) / FILE_NAME
    return beside if beside.is_file() else None


class SiteNow:
    """The content of a site file as it is now. Safe to share between threads.

    Args:
        find: the file that counts; None if there is none.
    """

    def __init__(self, find: Callable[[], Path | None]) -> None:
        self._find = find
        self._read: tuple[object, Site] = (None, Site())

    def __call__(self) -> Site:
        """The site. Raises InvalidInput if the file is wrong, or not there."""
        file = self._find()
        if file is None:
            return Site()
        try:
            status = file.stat()
        except OSError:
            return read_site(file)
        stamp = (file, status.st_mtime_ns, status.st_size, status.st_ino)
        last_stamp, site = self._read
        if stamp != last_stamp:
            site = read_site(file)
            self._read = (stamp, site)
        return site


def _read(document: object, file: Path) -> Site:
    problems = Problems()
    at = At("", problems)
    sections_of_assets = {kind: section_of(kind) for kind in kinds() if kind != CODE}
    if document is None:
        return Site(file)
    if not isinstance(document, dict):
        raise InvalidInput.at("", "a site file is a mapping", "see docs/assets.md")
    at.known_keys(document, (*_PLACES, *sections_of_assets.values(), _IMAGES))
    folder = file.absolute().parent
    sections = {name: _entries(document.get(name), at.below(name)) for name in (*_PLACES, *sections_of_assets.values())}
    datastores = {name: _location(value, here, folder) for name, value, here in sections["datastores"]}
    locations = {name: _location(value, here, folder) for name, value, here in sections["locations"]}
    assets: dict[str, list[tuple[Reference, Any]]] = {}
    for kind, section in sections_of_assets.items():
        for name, value, here in sections[section]:
            reference = reference_of(name)
            if reference is None or reference.type not in ("", kind):
                here.wrong("this is not a name of such an asset", "as in azureml:NAME, or azureml://registries/…")
            else:
                assets.setdefault(kind, []).append((reference, _stand_in(kind, value, here, folder)))
    images = {
        name: _stand_in("environment", value, here, folder)
        for name, value, here in _entries(document.get(_IMAGES), at.below(_IMAGES))
    }
    problems.check()
    return Site(file, datastores, locations, assets, images)


def _entries(section: object, at: At) -> Iterator[tuple[str, Any, At]]:
    if section is not None and at.is_of(section, dict, "a mapping from what documents name to what stands for it"):
        assert isinstance(section, dict)  # noqa: S101 - for type checkers
        yield from ((str(name), value, at.below(str(name))) for name, value in section.items())


def _location(value: object, at: At, folder: Path) -> str:
    """Return where something is here, made absolute."""
    if not isinstance(value, str) or not value:
        at.wrong("must be a folder, a file or a URL")
        return ""
    try:
        path = supported_path(absolute_path(value, folder))
    except ValueError as error:
        at.wrong(str(error))
        return ""
    return f"{path}/" if value.endswith("/") and not path.endswith("/") else path


def _stand_in(kind: str, value: object, at: At, folder: Path) -> Any:
    if isinstance(value, dict) and kind == "environment":
        return value
    if not isinstance(value, str) or not value:
        expected = "an asset of here, or a file" + (", or the environment itself" if kind == "environment" else "")
        at.wrong(f"must be {expected}")
        return None
    reference = reference_of(value)
    if reference is not None:
        if reference.registry:
            at.wrong("a registry of Azure ML can't stand for anything here", "as in azureml:NAME@latest")
        return value
    from parallelrun_core.assets.kinds import model_of

    location = _location(value, at, folder)
    if not model_of(kind).has_files and location and location_of(location).kind != LOCAL:
        at.wrong("must be the name of an asset of here, or a file")
    return location


def _fits(named: Reference, reference: Reference) -> bool:
    if not fnmatchcase(reference.name, named.name) or not fnmatchcase(reference.registry, named.registry):
        return False
    if named.version:
        return fnmatchcase(reference.version or reference.label, named.version)
    return named.label in (LATEST, reference.label)


def _joined(folder: str, path: str) -> str:
    return f"{folder.rstrip('/')}/{path if is_url(folder) else path.rstrip('/')}" if path else folder
