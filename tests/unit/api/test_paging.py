"""The tokens and limits of lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_api.http.paging import clamped, decode_numbers, decode_token, encode_token
from parallelrun_core.errors import InvalidInput


def test_the_token_of_a_page_comes_back() -> None:
    assert decode_numbers(encode_token("decided", 1, 2, 3), "decided", 3) == [1, 2, 3]
    assert decode_token(encode_token("jobs", "job_x"), "jobs", 1) == ["job_x"]


@given(token=st.text())
def test_anything_but_a_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput):
        decode_numbers(token, "decided", 3)


@pytest.mark.parametrize("limit, used", [(-1, 1), (0, 1), (7, 7), (10**30, 500)])
def test_limits_are_between_one_and_five_hundred(limit: int, used: int) -> None:
    assert clamped(limit) == used
