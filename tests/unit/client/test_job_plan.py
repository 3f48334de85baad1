"""How many nodes are of use for a job, and what they need, told before it runs."""

from __future__ import annotations

import pytest

from parallelrun.job_file.plan import JobPlan
from parallelrun_core.checks.extent import Extent


def plan(mini_batches: int, workers: int, *, nodes: int = 1, is_auto: bool = False, **extent: object) -> JobPlan:
    return JobPlan(
        extent=Extent(mini_batches=mini_batches, **extent),  # type: ignore[arg-type]
        is_auto=is_auto, workers=workers, nodes=nodes,
    )  # fmt: skip


@pytest.mark.parametrize(
    "mini_batches, workers, most", [(1, 4, 1), (18, 4, 1), (19, 4, 2), (36, 2, 4), (4500, 1, 1000)]
)
def test_plan_leaves_each_node_some_rounds_of_mini_batches(mini_batches: int, workers: int, most: int) -> None:
    assert plan(mini_batches, workers).most_nodes == most


def test_plan_counts_all_mini_batches_in_flight_as_being_worked_on() -> None:
    waiting = JobPlan(extent=Extent(mini_batches=4500), is_auto=False, workers=2, nodes=1, in_flight=50)
    assert waiting.most_nodes == 10


def test_plan_of_a_job_that_chooses_its_sizes_names_no_number_of_nodes() -> None:
    assert plan(10, 2, is_auto=True).most_nodes == 0
    assert plan(10, 2, is_auto=True).as_dict()["most_nodes"] is None


def test_plan_counts_the_disk_only_for_what_is_copied_to_the_nodes() -> None:
    assert plan(10, 2, largest_bytes=1000).disk_bytes == 0
    assert plan(10, 2, largest_bytes=1000, is_staged=True).disk_bytes == 6000


def test_plan_tells_times_for_doubled_numbers_of_nodes_the_most_and_what_is_there() -> None:
    assert plan(360, 4, nodes=5).node_counts() == [1, 2, 4, 5, 8, 16, 20]


def test_plan_says_which_node_has_too_little_disk_for_what_is_copied() -> None:
    def planned(free: int, *, is_staged: bool = True) -> JobPlan:
        extent = Extent(mini_batches=5, largest_bytes=10**9, is_staged=is_staged)
        return JobPlan(extent=extent, is_auto=False, workers=2, nodes=1, disks_free={"node000": free})

    assert planned(5 * 10**9).lacks_disk.startswith("node000 has 5.0 GB of disk free: files are copied to the node")
    assert planned(5 * 10**9).as_dict()["lacks_disk"]
    assert planned(6 * 10**9).lacks_disk == planned(1, is_staged=False).lacks_disk == ""
