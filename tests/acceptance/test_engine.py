"""Where there is no engine, the tests that need one say so, and how to get one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance import engine

pytestmark = pytest.mark.acceptance


def test_what_is_missing_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")

    with pytest.raises(engine.EngineMissing, match=r"no Docker Engine answers: .*DOCKER_HOST"):
        engine.reach()


@pytest.mark.parametrize("value, required", [("1", True), ("0", False), ("", False)])
def test_where_one_has_to_be_there(monkeypatch: pytest.MonkeyPatch, value: str, required: bool) -> None:
    monkeypatch.setenv(engine.REQUIRED, value)

    assert engine.is_required() == required
