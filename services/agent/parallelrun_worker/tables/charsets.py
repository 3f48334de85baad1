"""Says where a text is not in the encoding of its table, and which encoding to write instead.

A detector's guess goes into the message only: text that is read by a guess would be made up.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from parallelrun_worker.tables.sniffing import Encoding

_DETECTED_BYTES = 32 << 10
"""How much of the text around the wrong byte the detector gets."""


_ASCII = 0x7F
_FEWEST_OTHERS = 8
"""With fewer bytes that aren't ASCII, a detector finds one code page as likely as another."""
_NEIGHBOURS = re.compile(rb"[\x80-\xff]{2}")


class OtherEncoding(ValueError):
    """A text is not in the encoding of its table."""


@contextmanager
def refusing(encoding: Encoding, start: int, data: bytes) -> Iterator[None]:
    """Turn an error of decoding these bytes, which are at `start` in their file, into one with the place.

    Raises:
        OtherEncoding: instead of UnicodeDecodeError.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        at = _wrong_byte(data, encoding.name)
        at = error.start if at is None else at
        wrong = data[at : at + 4].hex(" ")
        sample = data[max(0, at - _DETECTED_BYTES // 2) :][:_DETECTED_BYTES]
        if b"\0" in sample:
            remedy = "it has zero bytes: is it a text at all?"
        elif encoding.name == "utf-8" and not data[:at].isascii():
            remedy = "what is before it is UTF-8, so that no other encoding fits: mend this place"
        else:
            guess = guessed(sample)
            hint = f"encoding: {guess} (a guess)" if guess else "encoding: windows-1252"
            remedy = f"set its encoding, as in {hint}"
        raise OtherEncoding(f"the text is not {encoding.name} at byte {start + at:,} ({wrong}); {remedy}") from error


def _wrong_byte(data: bytes, name: str) -> int | None:
    try:
        data.decode(name)
    except UnicodeDecodeError as error:
        return error.start
    return None


def guessed(sample: bytes) -> str:
    """The encoding that a detector finds most likely; empty without one in this environment, or if it finds none."""
    try:
        import charset_normalizer
    except ImportError:
        return ""
    if sum(byte > _ASCII for byte in sample) < _FEWEST_OTHERS:
        return ""
    best = charset_normalizer.from_bytes(sample).best()
    if best is None or best.encoding in ("ascii", "utf_8"):
        return ""
    # Letters with accents stand alone; characters of several bytes would each take the letter behind one, too.
    has_several = charset_normalizer.utils.is_multi_byte_encoding(best.encoding)
    return "" if has_several and not _NEIGHBOURS.search(sample) else best.encoding
