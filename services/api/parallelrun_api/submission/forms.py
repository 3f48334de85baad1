"""Reads a submission's `multipart/form-data`, without ever having the whole zip in memory."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Final

from anyio.to_thread import run_sync
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from parallelrun_api.http.errors import BodyTooLarge
from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import make_store

SPEC: Final = "spec"
CODE: Final = "code"
CONTENT: Final = "content"
_WRITE_AT_ONCE: Final = 1 << 20


class SubmissionForm:
    """A form of two parts, in any order: `spec` as text and, optionally, a zip as a file.

    Args:
        file_part: the name of the zip.

    Raises:
        InvalidInput: the content type of the form names no boundary.
    """

    def __init__(self, content_type: str, *, max_spec_bytes: int, file_part: str = CODE) -> None:
        boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
        if not boundary:
            raise InvalidInput.at("/header/content-type", "the form has no boundary")
        self.code: IO[bytes] | None = None
        """The zip, in a file without a name, which vanishes when it is closed."""
        self._boundary = boundary
        self._file_part = file_part
        self._max_spec_bytes = max_spec_bytes
        self._received: dict[str, bytearray] = {}
        self._code_hash = hashlib.sha256()
        self._header = (bytearray(), bytearray())
        self._disposition = b""
        self._name = ""
        self._is_whole = False

    async def read(self, chunks: AsyncIterator[bytes], folder: Path) -> None:
        """Read the whole form; the zip goes to a file on the volume of `folder`.

        Raises:
            InvalidInput: it isn't a form, or has other parts.
            BodyTooLarge: the spec is over its limit.
        """
        try:
            parser = self._parser()
            async for chunk in chunks:
                parser.write(chunk)
                if len(self._received.get(self._file_part, b"")) >= _WRITE_AT_ONCE:
                    await run_sync(self._write_code, folder)
            parser.finalize()
        except FormParserError as error:
            raise InvalidInput("The body can't be read as multipart/form-data.") from error
        if not self._is_whole:
            raise InvalidInput("The body ends in the middle of the form.")
        if self._file_part in self._received:
            await run_sync(self._write_code, folder)

    def spec_text(self) -> bytes:
        """The part with the job spec.

        Raises:
            InvalidInput: there is none.
        """
        if SPEC not in self._received:
            raise InvalidInput.at("", f"the form has no part {SPEC!r} with the job spec")
        return bytes(self._received[SPEC])

    def sha256(self) -> str:
        """Hash of the two parts; their order and the boundary don't count."""
        spec = hashlib.sha256(self.spec_text()).digest()
        return hashlib.sha256(spec + self._code_hash.digest()).hexdigest()

    def close(self) -> None:
        if self.code is not None:
            self.code.close()

    def _write_code(self, folder: Path) -> None:
        if self.code is None:
            make_store(folder)
            self.code = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `close` closes it
        self.code.write(self._received[self._file_part])
        self._code_hash.update(self._received[self._file_part])
        self._received[self._file_part].clear()

    def _parser(self) -> MultipartParser:
        return MultipartParser(
            self._boundary,
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_end": self._on_end,
            },
        )

    def _on_part_begin(self) -> None:
        self._disposition = b""

    def _on_header_end(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = bytes(value)
        self._header = (bytearray(), bytearray())

    def _on_headers_finished(self) -> None:
        name = parse_options_header(self._disposition)[1].get(b"name", b"").decode(errors="replace")
        if name not in (SPEC, self._file_part):
            allowed = f"only {SPEC!r} and {self._file_part!r} are allowed"
            raise InvalidInput.at("", f"the form has a part {name[:50]!r}", allowed)
        if name in self._received:
            raise InvalidInput.at("", f"the form has the part {name!r} twice")
        self._received[name] = bytearray()
        self._name = name

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        received = self._received[self._name]
        received.extend(data[start:end])
        if self._name == SPEC and len(received) > self._max_spec_bytes:
            raise BodyTooLarge(f"The job spec has more than {self._max_spec_bytes:,} bytes.")

    def _on_end(self) -> None:
        self._is_whole = True
