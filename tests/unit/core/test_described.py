"""Fields are described by the text below them, when somebody asks."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from parallelrun_core.described import Described, descriptions


class _Base(Described):
    first: int = 0
    """Of the base,
    in two lines."""
    second: int = 0


class _Model(_Base):
    second: int = 1
    """Its own."""
    third: str = Field(default="", alias="other")
    """By another name."""
    fourth: str = Field(default="", description="As the field says.")
    """As the text says."""


def test_of_its_own_fields_and_of_those_of_its_bases() -> None:
    assert descriptions(_Model) == {
        "first": "Of the base,\nin two lines.",
        "second": "Its own.",
        "third": "By another name.",
        "fourth": "As the field says.",
    }


def test_a_schema_has_them_under_the_names_that_it_shows() -> None:
    shown: dict[str, Any] = _Model.model_json_schema()["properties"]
    assert {name: field["description"] for name, field in shown.items()} == {
        "first": "Of the base,\nin two lines.",
        "second": "Its own.",
        "other": "By another name.",
        "fourth": "As the field says.",
    }


def test_a_base_is_not_changed_by_what_is_below_it() -> None:
    assert descriptions(_Base) == {"first": "Of the base,\nin two lines."}
