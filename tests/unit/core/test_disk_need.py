"""The room that copied mini-batches need on a node, beside what is free there."""

from __future__ import annotations

from parallelrun_core.checks.disk_need import NodeDisk, too_small

_GB = 10**9


def test_disk_that_is_too_small_is_named_with_what_is_needed_and_what_to_do() -> None:
    disks = [NodeDisk("node000", 4, 200 * _GB), NodeDisk("node001", 4, 50 * _GB), NodeDisk("node002", 8, 200 * _GB)]
    assert too_small(10 * _GB, disks) == (
        "node001 has 50.0 GB of disk free, and 1 other node less than the job needs: files are copied to the node, a "
        "mini-batch has about 10.0 GB, and 4 workers with up to 3 of them each need 120.0 GB. Mini-batches will wait "
        "for room, or fail for want of it: make them smaller, set a lower max_concurrency_per_instance, or use "
        "ro_mount where the data can be read in place"
    )


def test_disk_is_large_enough_if_nothing_is_copied_or_its_room_is_not_known() -> None:
    assert too_small(0, [NodeDisk("node000", 4, 1)]) == ""
    assert too_small(10 * _GB, [NodeDisk("node000", 4, 0)]) == ""
    assert too_small(10 * _GB, [NodeDisk("node000", 1, 30 * _GB)]) == ""
    assert too_small(10 * _GB, []) == ""
