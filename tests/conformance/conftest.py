"""What documents mean depends on no server, also where one was in the same process."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.datastores import registry as datastore_registry
from tests.conformance.documents import make_folder


@pytest.fixture(autouse=True)
def _without_datastores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datastore_registry, "_SOURCES", [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the documents, with the files that they name."""
    return make_folder(tmp_path)
