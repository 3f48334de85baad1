"""The last lines of a log, found from its end."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from parallelrun_api.views.files import last_lines


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\n\n", b"x" * 70_000])).map(b"".join),
    lines=st.integers(0, 6),
)
def test_last_lines_are_those_of_splitting(data: bytes, lines: int) -> None:
    fd = os.memfd_create("log")
    try:
        os.write(fd, data)
        begin = last_lines(fd, len(data), lines)
    finally:
        os.close(fd)

    whole = data.removesuffix(b"\n").split(b"\n") if data else []
    expected = b"\n".join(whole[max(0, len(whole) - lines) :]) if lines else b""
    assert data[begin:].removesuffix(b"\n") == expected
