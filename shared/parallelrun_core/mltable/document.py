"""An MLTable file: what it reads and how (reference §4). Every unknown key is refused, with its place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.steps import AnyStep, parse_steps
from parallelrun_core.problems import At, Problems
from parallelrun_core.spec import load_document
from parallelrun_core.storage.globs import has_wildcard, split_pattern
from parallelrun_core.storage.location import is_url, joined, shortened
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.storage.supported import supported_path
from parallelrun_core.untrusted.document import MAX_DOCUMENT_BYTES

FILE_NAME: Final = "MLTable"
_KEYS: Final = ("$schema", "type", "paths", "transformations", "traits", "metadata", "query_source")
_KINDS: Final = ("file", "folder", "pattern")


@dataclass(frozen=True, slots=True)
class TableSource:
    """An entry of `paths`, made absolute."""

    kind: str
    """`file`, `folder` or `pattern`."""
    path: str
    """The path of the file or folder, or of the folder that the pattern starts from."""
    pattern: tuple[str, ...] = ()
    """The names on the way from there, with their wildcards."""


@dataclass(frozen=True, slots=True)
class MLTable:
    file: str
    sources: list[TableSource]
    steps: list[AnyStep]


def load_mltable(path: str, rule: PathRule | None = None, *, fetches: bool = True) -> MLTable:
    """Read the MLTable file at, or in the folder, `path`.

    Args:
        fetches: whether servers that it names may be asked for anything.

    Raises:
        InvalidInput: it doesn't exist, or is not valid; with one problem for each wrong place.
        StoreAway: a store doesn't answer, or refuses for now.
    """
    storage = storage_of(path)
    try:
        file = joined(path, FILE_NAME) if storage.is_folder(path) else joined("", path)  # spelled as it will be listed
        with storage.open(file, rule) as opened:
            text = opened.read(MAX_DOCUMENT_BYTES + 1)  # more is refused, and may have no end
    except StoreAway:
        raise
    except OSError as error:
        hint = f"an input of type mltable is a folder with a file {FILE_NAME}; transformations of the job need no type"
        raise InvalidInput.at("", f"{error.filename or path!r} can't be read: {error.strerror}", hint) from error
    return parse_mltable(load_document(text), file, fetches=fetches)


def parse_mltable(document: object, file: str, *, fetches: bool = True) -> MLTable:
    """Check the content of an MLTable file; paths are relative to its folder.

    Raises:
        InvalidInput: with one problem for each wrong place.
    """
    at = At("", Problems())
    if not isinstance(document, dict):
        raise InvalidInput.at("", f"{file!r} is not an MLTable: it must be a mapping with paths")
    at.known_keys(document, _KEYS)
    if document.get("type", "mltable") != "mltable":
        at.below("type").wrong(f"must be mltable, not {document['type']!r}")
    if "query_source" in document:
        at.below("query_source").wrong("databases can't be read here", "export the rows to files, and name paths")
    sources = _sources(document.get("paths"), os.path.dirname(file), at.below("paths"), fetches=fetches)
    steps = parse_steps(document.get("transformations"), at.below("transformations"))
    at.problems.check()
    return MLTable(file, sources, steps)


def _sources(paths: object, folder: str, at: At, *, fetches: bool) -> list[TableSource]:
    if not isinstance(paths, list) or not paths:
        at.wrong("must be a list of {file: …}, {folder: …} or {pattern: …}")
        return []
    sources = [_source(entry, folder, at.below(number), fetches=fetches) for number, entry in enumerate(paths)]
    return [source for source in sources if source is not None]


def _source(entry: Any, folder: str, at: At, *, fetches: bool) -> TableSource | None:  # noqa: PLR0911
    if not isinstance(entry, dict) or len(entry) != 1:
        at.wrong("must have exactly one of file, folder, pattern")
        return None
    kind, text = next(iter(entry.items()))
    if kind not in _KINDS:
        at.known_keys(entry, _KINDS)
        return None
    if not isinstance(text, str) or not text or "\0" in text:
        at.below(kind).wrong(f"must be a path, not {text!r}")
        return None
    try:
        text = supported_path(text)
    except ValueError as error:
        at.below(kind).wrong(str(error))
        return None
    if kind == "pattern":
        return _pattern(folder, text)
    path = shortened(joined(folder, text))
    is_asked = kind == "file" and has_wildcard(text) and (fetches or not is_url(path))
    if is_asked and not storage_of(path).is_there(path):
        at.below(kind).wrong(f"{text!r} is taken literally, and there is no such file", "use pattern:")
        return None
    return TableSource(kind, path)


def _pattern(folder: str, text: str) -> TableSource:
    """A pattern from its fixed folder on; the MLTable's own folder is fixed, whatever its name."""
    start, names = split_pattern(text)
    start = shortened(joined(folder, start))
    return TableSource("pattern", start, tuple(names)) if names else TableSource("file", start)
