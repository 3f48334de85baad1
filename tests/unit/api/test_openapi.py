"""The OpenAPI document is up to date, and says all of what a client must know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from parallelrun_api import contract
from parallelrun_api.app import create_app
from parallelrun_api.context import build_context
from parallelrun_api.http.token import Token
from parallelrun_api.settings import ApiSettings
from parallelrun_core.names.patterns import in_words

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(build_context(ApiSettings()), Token()).openapi()


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_committed_one_is_this_one(document: dict[str, Any]) -> None:
    committed = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))

    assert committed == json.loads(json.dumps(document)), "run: .venv/bin/python -m parallelrun_api.openapi"


def test_its_version(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        assert operation["summary"], (method, path)
        assert operation["description"], (method, path)
        for parameter in operation.get("parameters", []):
            assert parameter["description"], (method, path, parameter["name"])
            if (pattern := parameter["schema"].get("pattern")) and parameter["name"] != "what_if":
                assert in_words(pattern) != in_words(""), (method, path, parameter["name"])


def test_every_operation_tells_its_errors_in_one_form(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        if not path.startswith("/v1/"):
            continue
        assert {"401", "421", "422", "431", "503"} <= operation["responses"].keys(), (method, path)
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"], (method, path, status)
        if "{" in path:
            assert "404" in operation["responses"], (method, path)


def test_only_what_is_open_needs_no_token(document: dict[str, Any]) -> None:
    assert document["security"] == [{"token": []}]
    free = {path for _, path, operation in operations(document) if operation.get("security") == []}
    assert free == {"/livez", "/readyz", "/v1/session"}


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    schemas = document["components"]["schemas"]

    used = {part.partition('"')[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}

    assert used <= schemas.keys()
    assert {"JobSpec", "Job", "Problem"} <= used


def test_two_models_of_one_name_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client would take the one for the other."""

    class Problem(BaseModel):
        """Not that of our errors."""

    monkeypatch.setattr(contract, "JobSpec", Problem)
    with pytest.raises(ValueError, match="two models have the name Problem"):
        create_app(build_context(ApiSettings()), Token()).openapi()
