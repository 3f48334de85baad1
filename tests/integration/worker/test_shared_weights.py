"""Weights that init() maps from a file are in a node's memory once, as docs/choosing-a-compute.md promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.models import LOADED, MAPPED, memory_of_weights, write_weights

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]

_BYTES = 64_000_000
_PAGE = Path(__file__).parents[3] / "docs" / "choosing-a-compute.md"


def test_worker_shares_mapped_weights_with_the_others_of_its_node(tmp_path: Path) -> None:
    assert MAPPED in _PAGE.read_text()
    weights = write_weights(tmp_path, _BYTES)
    assert 0.9 < memory_of_weights(MAPPED, weights, workers=2) / _BYTES < 1.2


def test_worker_has_a_copy_of_weights_that_it_loads(tmp_path: Path) -> None:
    weights = write_weights(tmp_path, _BYTES)
    assert memory_of_weights(LOADED, weights, workers=2) / _BYTES > 1.9
