"""What documents mean depends on no server, also where one was in the same process."""

from __future__ import annotations

import pytest

from parallelrun_core.datastores import registry as datastore_registry


@pytest.fixture(autouse=True)
def _without_datastores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datastore_registry, "_PLACES", [])
