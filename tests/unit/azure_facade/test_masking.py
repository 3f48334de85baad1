"""No answer of this facade has the value of an environment variable."""

import pytest

from parallelrun_api.azure.bodies import check_not_masked, masked
from parallelrun_core.errors import InvalidInput

SENT = {
    "environmentVariables": {"KEY": "secret"},
    "jobs": {"a": {"environment_variables": {"KEY": "secret"}, "command": "x"}, "b": [{"environment_variables": {}}]},
}


def test_values_are_masked_wherever_they_are() -> None:
    shown = masked(SENT)

    assert "secret" not in str(shown)
    assert shown["jobs"]["a"] == {"environment_variables": {"KEY": "***"}, "command": "x"}
    assert masked(shown) == shown


def test_what_was_masked_is_not_taken_for_a_value() -> None:
    check_not_masked(SENT)
    with pytest.raises(InvalidInput, match="KEY"):
        check_not_masked(masked(SENT))
