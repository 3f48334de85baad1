"""Numbers of things, as people read them."""

from __future__ import annotations

from parallelrun_core.figures import counted


def test_numbers_of_things_have_the_name_that_fits() -> None:
    assert counted(1, "node") == "1 node"
    assert counted(0, "node") == "0 nodes"
    assert counted(2_000, "mini-batch") == "2,000 mini-batches"
    assert counted(2, "process") == "2 processes"
    assert counted(1, "try", "tries") == "1 try"
    assert counted(3, "try", "tries") == "3 tries"
