"""Any path that the operating system allows goes into a message and comes out unchanged."""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import CorruptLog
from parallelrun_core.wire import message
from parallelrun_core.wire.message import (
    FILES,
    FILES_ZSTD,
    MAX_MESSAGE_BYTES,
    Message,
    decode,
    encode_files,
    encode_reference,
    groups_of,
    paths_of,
    reference_of,
)

_ALLOWED = bytes.maketrans(b"\0/", b"\n\xff")
names = st.binary(min_size=1, max_size=12).map(lambda name: name.translate(_ALLOWED).replace(b"..", b"..."))
folders = st.lists(names, max_size=4).map(lambda parts: b"/" + b"/".join(parts))
groups = st.lists(st.tuples(folders, st.lists(names, min_size=1, max_size=6)), min_size=1, max_size=5)

Groups = list[tuple[bytes, list[bytes]]]


def expected(given_groups: Groups) -> list[bytes]:
    return [os.path.join(folder, name) for folder, names in given_groups for name in names]


@given(given_groups=groups)
@settings(deadline=None)
def test_paths_come_back_as_they_were_in_order(given_groups: Groups) -> None:
    items = len(expected(given_groups))
    message = decode(encode_files(given_groups, items))
    assert message.items == items
    assert groups_of(message) == given_groups
    assert paths_of(message).split(b"\0") == expected(given_groups)


@given(given_groups=groups, repeat=st.integers(50, 200))
@settings(deadline=None, max_examples=30)
def test_long_messages_are_compressed_and_come_back_as_they_were(given_groups: Groups, repeat: int) -> None:
    many = given_groups * repeat
    message = decode(encode_files(many, len(expected(many))))
    assert message.kind == (FILES_ZSTD if len(b"".join(expected(many))) > 5000 else message.kind)
    assert groups_of(message) == many
    assert paths_of(message).split(b"\0") == expected(many)


def test_the_root_folder_gets_no_second_slash() -> None:
    assert paths_of(decode(encode_files([(b"/", [b"a", b"b"])], 2))) == b"/a\0/b"


def test_a_name_without_a_folder_stays_relative() -> None:
    assert paths_of(decode(encode_files([(b"", [b"a"])], 1))) == b"a"


def test_the_folder_is_there_once() -> None:
    folder = b"/data/" + os.urandom(100).replace(b"\0", b"x").replace(b"/", b"x")
    raw = encode_files([(folder, [b"%d" % number for number in range(40)])], 40)
    assert decode(raw).kind == FILES
    assert len(raw) < 2 * len(folder) + 40 * 3


def test_ten_thousand_ordinary_paths_fit_in_a_message() -> None:
    files = [b"image-%07d.jpeg" % number for number in range(10_000)]
    assert len(encode_files([(b"/data/images", files)], len(files))) <= MAX_MESSAGE_BYTES


@given(items=st.integers(0, 2**32), term=st.integers(1, 2**40), offset=st.integers(0, 2**50))
def test_a_reference_says_where_the_message_is(items: int, term: int, offset: int) -> None:
    message = decode(encode_reference(items, term, offset))
    assert message.items == items
    reference = reference_of(message)
    assert (reference.term, reference.offset) == (term, offset)
    with pytest.raises(CorruptLog):
        paths_of(message)
    assert len(encode_reference(items, term, offset)) < 64


@given(raw=st.binary(max_size=60))
@settings(deadline=None)
def test_bytes_that_are_no_message_are_told_as_such(raw: bytes) -> None:
    with suppress(CorruptLog):
        paths_of(decode(raw))


@given(payload=st.binary(max_size=60))
@settings(deadline=None)
def test_a_payload_that_cannot_be_unpacked_is_told_as_such(payload: bytes) -> None:
    message = Message(FILES_ZSTD, 1, payload)
    for read in (paths_of, groups_of):
        with pytest.raises(CorruptLog):
            read(message)


def test_a_message_that_unpacks_to_more_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parallelrun_core.wire.message._MAX_DECODED_BYTES", 10_000)
    bomb = decode(encode_files([(b"/f", [b"a" * 200] * 1000)], 1000))
    with pytest.raises(CorruptLog):
        paths_of(bomb)


def test_unknown_kinds_are_refused_not_guessed() -> None:
    raw = msgspec.msgpack.encode([9, 1, b"/a\0b"])
    with pytest.raises(CorruptLog):
        paths_of(decode(raw))
    with pytest.raises(CorruptLog):
        groups_of(decode(raw))


def test_a_described_mini_batch_comes_back() -> None:
    pieces = [message.Piece(b"/data/\xff.csv", 10, 20, is_aligned=True, first_row=7), message.Piece(b"/data/b.csv")]
    groups = message.join_groups([(b"/data", [b"x", b"y"])])
    for copies in (1, 200):  # plain, and compressed
        described = message.DescribedMiniBatch(2, ["1006", None], pieces * copies, groups)
        found = message.decode(message.encode_described(described, 3))
        assert found.items == 3
        assert message.is_described(found)
        assert message.described_of(found) == described
        assert message.files_of(found) == [b"/data/x", b"/data/y", *(piece.path for piece in pieces * copies)]


def test_pieces_of_releases_that_counted_no_rows_are_read() -> None:
    payload = msgspec.msgpack.encode([0, [], [[b"/a.csv", 10, 20, True, 7]], b""])
    raw = msgspec.msgpack.encode([message.DESCRIBED, 0, payload])
    piece = message.Piece(b"/a.csv", 10, 20, is_aligned=True, first_row=7)
    assert message.described_of(message.decode(raw)).pieces == [piece]
    assert (piece.left_out, piece.rows) == (0, -1)


def test_a_plain_list_of_files_describes_nothing() -> None:
    found = message.decode(message.encode_files([(b"/data", [b"x"])], 1))
    assert not message.is_described(found)
    assert message.files_of(found) == [b"/data/x"]
    with pytest.raises(CorruptLog, match="is not a described one"):
        message.described_of(found)
