"""What a user may ask of the adviser, as in `nodes=1..64`: what the schema admits is computed, all else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.adviser.asked import PATTERN, parse_what_if
from parallelrun_core.adviser.what_if import curve_of
from parallelrun_core.errors import Conflict, InvalidInput
from tests.unit.adviser.jobs import went


@given(st.from_regex(PATTERN, fullmatch=True))
def test_what_the_schema_admits_is_computed(query: str) -> None:
    setting, values = parse_what_if(query)

    assert 1 <= len(values) <= 64
    assert len(curve_of(went([1.0] * 9, nodes=1, processes=1), setting, values[:2]).points) == len(values[:2])


@pytest.mark.parametrize("query", ["nodes=1..64\n", "nodes= 1", "nodes=+1", "nodes=1_0", "nodes=100000", "=1"])
def test_what_the_schema_does_not_admit_is_refused(query: str) -> None:
    with pytest.raises(InvalidInput):
        parse_what_if(query)


def test_more_workers_than_can_be_scheduled_are_refused() -> None:
    with pytest.raises(Conflict, match="more than 100,000 workers"):
        curve_of(went([1.0] * 100), "nodes", [1, 100_000])
