"""What clients send has limits."""

import pytest

from parallelrun_api.azure.bodies import MAX_DEPTH, check_depth
from parallelrun_core.errors import InvalidInput


def nested(levels: int) -> object:
    value: object = "x"
    for number in range(levels):
        value = {"a": value} if number % 2 else [value]
    return value


def test_a_document_is_nested_only_so_deep() -> None:
    check_depth(nested(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 20_000):
        with pytest.raises(InvalidInput, match="levels deep"):
            check_depth(nested(levels))
