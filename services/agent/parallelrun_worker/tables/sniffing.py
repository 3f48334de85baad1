"""Sniffing: the encoding and the line ends of a text file, by its first bytes.

The master, the agent and the worker all ask this module, so that they cut, bring and read a file in the same way.
Only what the bytes prove is taken from them: UTF-8, UTF-16 and UTF-32 by their byte order mark or by their zero bytes.
A code page is never guessed, since any bytes are text in most of them.
"""

import codecs
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

from parallelrun_worker.tables.byte_profile import ByteProfile, byte_profile_of
from parallelrun_worker.tables.records import Grammar

FIRST_BYTES = 4 << 10
"""How much of a file is looked at, if there is a line end in it."""
MOST_BYTES = 64 << 10
"""How much is looked at if there isn't."""

_MARKS = {
    b"\xff\xfe\0\0": "utf-32-le", b"\0\0\xfe\xff": "utf-32-be", b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
}  # fmt: skip
"""Byte order marks; that of UTF-16 is the beginning of one of UTF-32."""
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_FAMILIES = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
"""What a file without a mark and without a zero byte is, which is too short to tell."""
_SPACES = "\t\r\n \xa0\u3000\u2028\u2029"
_FEWEST_LINES = 2
_LEAST_ASCII = 0.01
"""Which share of the characters of a text in UTF-16 or 32 are ASCII at least: delimiters, digits, ends of lines."""
_FEWEST_BYTES = 64
_MOST_CONTROLS = 0.05
"""Which share of the characters of so long a text may be control characters other than NUL, if there is a NUL."""
_LF, _CR = "\n", "\r"

ReadSome = Callable[[int, int], bytes]
"""At most so many bytes of a file from a place on: size, place."""
_CONTROLS = bytes([0, *range(4, 9), *range(16, 27)])
_BYTES = bytes(range(256))
_ASCII = 0x7F
_BEYOND_ASCII = _BYTES[_ASCII + 1 :]
_NO_CHARACTERS = frozenset(["Cc", "Cn", "Co"])
"""Unicode's categories of control characters, and of what nobody has assigned."""
_MOST_UNDEFINED = 0.01
"""Which share of a text in a code page may be bytes that mean nothing there: in a text, they are slips."""
_FEW = 3
_SWITCH = re.compile(rb"\x1b\$(?:[@AB]|[()*+][A-H@])")
"""What switches from ASCII to characters of two bytes, in Japanese, Chinese and Korean text of ISO 2022."""
_ZERO_BLOCK = bytes(512)
_HIGHEST_OF_FEW = 8
"""Where no byte is so low, none of the others is a control character by chance."""


class NotText(ValueError):
    """A file whose first bytes are not those of a text."""


class Encoding(NamedTuple):
    name: str
    """Python's name of the encoding."""
    newline: bytes
    """The line end at which a file is cut: a carriage return if the file's beginning has no other line end."""
    width: int
    """Bytes of one code unit."""
    bom: int
    """Length of the byte order mark."""

    @property
    def has_returns(self) -> bool:
        """Return whether lines end with carriage returns alone."""
        return self.newline != _LF.encode(self.name)


def sniffed(read_some: ReadSome, declared: str) -> Encoding:
    """The encoding of a file.

    Args:
        declared: the encoding that its table has; a byte order mark or zero bytes that prove another one count more.

    Raises:
        NotText: it is no text.
    """
    head = read_some(FIRST_BYTES, 0)
    name, bom = _name_of(head, declared)
    newline = _newline_in(head[bom:], name)
    if newline is None and len(head) >= FIRST_BYTES:
        head += read_some(MOST_BYTES - len(head), len(head))
        newline = _newline_in(head[bom:], name)
    newline = newline or _LF.encode(name)
    return Encoding(name, newline, len(newline), bom)


def check_controls(
    data: bytes, encoding: Encoding, start: int, delimiter: str, byte_profile: ByteProfile | None = None
) -> None:
    """Check that text is not full of control characters, or of bytes that mean nothing in its code page.

    Those that separate fields (the delimiter, 1 to 3, and 28 to 31) or switch between sets of characters don't count.

    Args:
        start: the position in the file where the text begins.
        byte_profile: of the text; None: not known.

    Raises:
        NotText: a part of it is.
    """
    if encoding.width > 1 or not data:
        return
    byte_profile = byte_profile or byte_profile_of(data)
    if byte_profile.has_escapes and (switch := _SWITCH.search(data)):
        place = f"from byte {start + switch.start():,} on"
        raise NotText(f"it is text of ISO 2022, with escape sequences {place}: save it as UTF-8")
    if byte_profile.least <= _HIGHEST_OF_FEW:
        marks = bytes(set(_CONTROLS) - set(delimiter.encode()))
        if encoding.name == "utf-8":  # a program may fill fields up with NUL, but not whole blocks of a disk
            if (zeros := data.find(_ZERO_BLOCK)) >= 0:
                raise NotText(
                    f"it is no text: from byte {start + zeros:,} on, {len(_ZERO_BLOCK)} bytes and more are zero"
                )
            marks = marks.replace(b"\0", b"")
        _check_share(data, start, marks, _MOST_CONTROLS, "are control characters")
    page = _code_page(encoding.name)
    if page is None or byte_profile.is_ascii or _may_be_utf8(data):
        return
    if any(bytes([each]) in data for each in page.undefined):
        _check_share(data, start, page.undefined, _MOST_UNDEFINED, f"mean nothing in {encoding.name}")
    _check_share(data, start, _BEYOND_ASCII, 1 - _LEAST_ASCII, "are beyond ASCII: there are no line ends and no blanks")


class _CodePage(NamedTuple):
    """An encoding in which each byte is a character, those of ASCII and others."""

    undefined: bytes
    """The bytes that are read, and mean nothing: Unicode has control characters for them."""


@cache
def _code_page(name: str) -> _CodePage | None:
    """None: several bytes may be one character."""
    characters = _BYTES.decode(name, "replace")
    if name == "utf-8" or len(characters) != len(_BYTES):
        return None
    read_anyway = "\ufffd" if name == "cp1252" else ""
    return _CodePage(bytes(
        byte
        for byte, character in enumerate(characters)
        if byte > _ASCII and (unicodedata.category(character) in _NO_CHARACTERS or character == read_anyway)
    ))  # fmt: skip


def _may_be_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8, of which the last character may be cut off."""
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(data)
    except UnicodeDecodeError:
        return False
    return True


def _check_share(data: bytes, start: int, marks: bytes, most: float, words: str) -> None:
    for at in range(0, len(data), FIRST_BYTES):
        part = data[at : at + FIRST_BYTES]
        count = len(part) - len(part.translate(None, marks))
        if count > max(most * len(part), _FEW) and len(part) >= _FEWEST_BYTES:
            raise NotText(f"it is no text: of the {len(part):,} bytes from byte {start + at:,} on, {count:,} {words}")


def first_width(read_some: ReadSome, encoding: Encoding, grammar: Grammar) -> int:
    """Return how many fields the first record of a file has, as far as it is at the file's beginning."""
    head = read_some(MOST_BYTES, 0)[encoding.bom :]
    return len(grammar.first(head.decode(encoding.name, "ignore"), has_returns=encoding.has_returns)[0])


def _name_of(head: bytes, declared: str) -> tuple[str, int]:
    for mark, name in _MARKS.items():
        if head.startswith(mark) and not (name == "utf-16-le" and _is_latin_1(head, declared)):
            return name, len(mark) * (2 if head.startswith(mark, len(mark)) else 1)
    if b"\0" in head:
        return _by_zero_bytes(head, declared), 0
    if declared not in _FAMILIES:
        return declared, 0
    # Every line of UTF-16 has a zero byte: a text without any is not what the table says.
    return ("utf-8" if len(head) > 3 and head.isascii() else _FAMILIES[declared]), 0


def _is_latin_1(head: bytes, declared: str) -> bool:
    """Return whether what looks like the mark of UTF-16 is a text of a code page that begins with these two letters."""
    return declared not in _FAMILIES and not declared.startswith("utf") and b"\0" not in head


@lru_cache(maxsize=8)  # a file is looked at for each of its pieces
def _by_zero_bytes(head: bytes, declared: str) -> str:
    """The encoding of a text with zero bytes: a wide one if that makes more of it text than the declared one does.

    Raises:
        NotText: it is full of control characters.
    """
    plain = declared if declared not in _FAMILIES else "utf-8"
    looks = [look for name in (plain, *_WIDE) if (look := _Stats.of(head, name)) is not None and look.is_text(plain)]
    with_lines = [look for look in looks if look.has_line_ends and not look.controls]
    best = max(with_lines or looks, key=lambda look: look.score, default=None)
    if best is None:
        return plain  # which reading it refuses, with the place
    if best.name == plain and best.controls > _MOST_CONTROLS and len(head) >= _FEWEST_BYTES:
        raise NotText(f"it is no text: of its first {len(head):,} bytes, {head.count(0):,} are zero")
    return best.name


class _Stats(NamedTuple):
    """The look of some bytes in one encoding; shares are of all bytes."""

    name: str
    ascii_share: float
    controls: float
    """Share of control characters and of unassigned ones, without NUL."""
    zeros: float
    """Share of NUL."""
    has_line_ends: bool
    """True if the encoding is a wide one, and there are lines that all end in it."""

    def is_text(self, plain: str) -> bool:
        """Return whether it may be the one that is meant: bytes of any sort often make characters of UTF-16."""
        return self.name == plain or (self.ascii_share >= _LEAST_ASCII and self.controls <= _MOST_CONTROLS)

    @property
    def score(self) -> float:
        return self.ascii_share - self.controls - self.zeros

    @classmethod
    def of(cls, head: bytes, name: str) -> "_Stats | None":
        """None: the bytes are not in this encoding."""
        codec = "latin-1" if name == "cp1252" else name
        try:
            text = codecs.getincrementaldecoder(codec)("strict").decode(head)
        except UnicodeDecodeError:
            return None
        if not text:
            return None
        ascii_count = sum(" " <= character < "\x7f" or character in "\r\n" for character in text)
        zeros = text.count("\0")
        controls = sum(not character.isprintable() and character not in _SPACES for character in text) - zeros
        share = 1 / len(text)
        lines = head.count(b"\n")
        has_line_ends = name in _WIDE and not zeros and lines >= _FEWEST_LINES and text.count("\n") == lines
        return cls(name, ascii_count * share, controls * share, zeros * share, has_line_ends)


def _newline_in(head: bytes, name: str) -> bytes | None:
    """The line end by which the file is cut; None: there is none here."""
    width = len(_LF.encode(name))
    newline, carriage_return = _LF.encode(name), _CR.encode(name)
    if _find(head, newline, width) >= 0:
        return newline
    at = _find(head, carriage_return, width)
    # One at the very end may be the first half of a line end.
    return carriage_return if 0 <= at < len(head) - width else None


def _find(data: bytes, mark: bytes, width: int) -> int:
    """Return where the first such character begins, not across two characters; -1: there is none."""
    at = data.find(mark)
    while at >= 0 and at % width:
        at = data.find(mark, at + 1)
    return at
