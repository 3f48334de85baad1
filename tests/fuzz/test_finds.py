"""Inputs that fuzzing begins with, and those it has found: each is read or refused."""

from __future__ import annotations

import pytest

from tests.fuzz.parsers import PARSERS

CASES = [
    pytest.param(name, data, id=f"{name}-{number}")
    for name, parser in PARSERS.items()
    for number, data in enumerate([*parser.seeds, *(file.read_bytes() for file in parser.finds())])
]


@pytest.mark.parametrize("name,data", CASES)
def test_parsers_read_or_refuse_each_input(name: str, data: bytes) -> None:
    PARSERS[name].try_input(data)
