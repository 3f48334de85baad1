"""Lists of blobs, and lists of blocks, in the XML of the storage service."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Final, Self
from xml.etree.ElementTree import Element, ParseError, SubElement, tostring
from xml.parsers.expat import ExpatError, ParserCreate

from parallelrun_api.azure.blobs.places import files
from parallelrun_api.azure.facade import Facade
from parallelrun_core.answers.files import FileEntry
from parallelrun_core.errors import InvalidInput

_MAX_RESULTS: Final = 5000
_BLOCK_KINDS: Final = frozenset({"Latest", "Uncommitted", "Committed"})


@dataclass(frozen=True)
class ListingRequest:
    prefix: str
    delimiter: str
    after: str
    most: int
    with_metadata: bool

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Return what a query asks for.

        Raises:
            InvalidInput: it is no query of a list.
        """
        try:
            most = int(query.get("maxresults", _MAX_RESULTS))
            after = base64.urlsafe_b64decode(query.get("marker", "")).decode()
        except ValueError as error:
            raise InvalidInput.at("/query", "maxresults is a number, and marker comes from the page before") from error
        most = max(1, min(most, _MAX_RESULTS))
        with_metadata = "metadata" in query.get("include", "")
        return cls(query.get("prefix", "")[:1024], query.get("delimiter", "")[:1], after[:1024], most, with_metadata)


def page(facade: Facade, container: str, query: ListingRequest) -> bytes:
    root = Element("EnumerationResults", {"ServiceEndpoint": "", "ContainerName": container})
    SubElement(root, "Prefix").text = query.prefix
    blobs = SubElement(root, "Blobs")
    last, count = "", 0
    for name, entry in _grouped(files(facade, container, query.prefix, query.after), query):
        if count == query.most:
            SubElement(root, "NextMarker").text = base64.urlsafe_b64encode(last.encode()).decode()
            break
        last, count = name, count + 1
        if entry is None:
            SubElement(SubElement(blobs, "BlobPrefix"), "Name").text = name
            last = name + "\U0010ffff"
        else:
            _add(blobs, name, entry, facade.blobs.metadata(container, name) if query.with_metadata else {})
    else:
        SubElement(root, "NextMarker")
    return b'<?xml version="1.0" encoding="utf-8"?>' + tostring(root)


def _grouped(entries: Iterator[FileEntry], query: ListingRequest) -> Iterator[tuple[str, FileEntry | None]]:
    """Names with their files; with a delimiter, a folder once, without a file, in place of all that is in it."""
    before = ""
    for entry in entries:
        rest = entry.path.removeprefix(query.prefix)
        if not query.delimiter or query.delimiter not in rest:
            yield entry.path, entry
            continue
        folder = query.prefix + rest.partition(query.delimiter)[0] + query.delimiter
        if folder != before:
            before = folder
            yield folder, None


def _add(blobs: Element, name: str, entry: FileEntry, metadata: Mapping[str, str]) -> None:
    blob = SubElement(blobs, "Blob")
    SubElement(blob, "Name").text = name
    properties = SubElement(blob, "Properties")
    changed = format_datetime(datetime.fromisoformat(entry.modified), usegmt=True)
    values = {
        "Creation-Time": changed,
        "Last-Modified": changed,
        "Etag": f"{entry.modified}-{entry.bytes}",
        "Content-Length": str(entry.bytes),
        "Content-Type": "application/octet-stream",
        "BlobType": "BlockBlob",
    }
    for key, value in values.items():
        SubElement(properties, key).text = value
    below = SubElement(blob, "Metadata")
    for key, value in metadata.items():
        if key.isascii() and key.isidentifier():
            SubElement(below, key).text = value


def blocks_of(body: bytes) -> list[str]:
    """The ids of the blocks in a list of them. Nothing in it is expanded: a list has no document type.

    Raises:
        ParseError: it can't be read.
    """
    ids: list[str] = []
    text: list[str] | None = None

    def begin(name: str, _: object) -> None:
        nonlocal text
        text = [] if name in _BLOCK_KINDS else None

    def end(name: str) -> None:
        nonlocal text
        if name in _BLOCK_KINDS and text is not None:
            ids.append("".join(text).strip())
        text = None

    def refuse(*_: object) -> None:
        raise ParseError("a list of blocks has no document type")

    parser = ParserCreate()
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda data: text.append(data) if text is not None else None
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(body, True)
    except ExpatError as error:
        raise ParseError(str(error)) from error
    return ids
