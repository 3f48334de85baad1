"""A disk that is full costs time, and nothing else: no try, no row, no torn output; and nobody has to lend a hand."""

from __future__ import annotations

import os
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun import Client
from parallelrun.errors import ApiError
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

ROW_BYTES = 10_000
SCRIPT = textwrap.dedent(f"""
    import os
    def run(mini_batch):
        print("words for a disk that may be full")
        return [os.path.basename(path).ljust({ROW_BYTES}, ".") for path in mini_batch]
""")


class SmallDisk:
    """A disk of some MB with all but so many bytes taken by a file that a test can remove."""

    def __init__(self, folder: Path, megabytes: int = 4) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        if os.getuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("needs root and the right to mount")
        self._ballast = folder / "ballast"

    def fill(self, *, but: int) -> None:
        free = os.statvfs(self.folder)
        with self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - but)

    def free(self) -> None:
        self._ballast.unlink()

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


@pytest.fixture
def small_disks() -> Iterator[list[SmallDisk]]:
    disks: list[SmallDisk] = []
    yield disks
    for disk in disks:
        disk.unmount()


def assert_nothing_was_lost(cluster: Cluster, job: str, files: int) -> None:
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED, result.failure
    assert [row.rstrip(".") for row in cluster.output(result)] == [f"file-{number:07d}.txt" for number in range(files)]
    assert {len(row) for row in cluster.output(result)} == {ROW_BYTES}
    assert {outcome.tries for outcome in read_decisions(cluster.folder(job).path)} == {1}
    assert (result.progress.retried, result.progress.failed, result.progress.lost) == (0, 0, 0)


@pytest.mark.parametrize(
    "where, room",
    [("parts", 105_000), ("parts", 0), ("journals", 0)],
    ids=["full-in-the-middle-of-rows", "full-from-the-start", "full-for-the-journal"],
)
def test_a_node_whose_disk_is_full_waits_charges_nobody_and_goes_on_by_itself(
    small_disks: list[SmallDisk], where: str, room: int
) -> None:
    with Cluster(slots=2, api=True) as cluster, Client(cluster.api_url) as client:
        cluster.kill("node000")
        job = cluster.submit(SCRIPT, inputs=cluster.files(120), mini_batch_size=4)
        disk = SmallDisk(cluster.folder(job).path / where)
        small_disks.append(disk)
        disk.fill(but=room)
        cluster.start("node000")
        cluster.until(lambda: cluster.logged("node000", "disk_full") > 0, "the agent finds the disk full")
        cluster.until(lambda: [node.state for node in client.nodes.list()] == ["disk_full"], "and says so to everyone")
        assert cluster.registry.state(job) is JobState.PROCESSING
        disk.free()
        cluster.until(lambda: cluster.logged("node000", "disk_has_room") > 0, "the agent finds room")
        assert_nothing_was_lost(cluster, job, 120)


def wait_below_the_floor_and_go_on(small_disks: list[SmallDisk], *, without: str = "") -> None:
    """The volume of a cluster has less free than its floor while a job runs, and room again later."""
    cluster = Cluster(slots=2, api=True, without=without)
    disk = SmallDisk(cluster.root, megabytes=64)
    small_disks.append(disk)
    with cluster, Client(cluster.api_url) as client:
        gate = cluster.home / "gate"
        waits = SCRIPT.replace(
            "    print(",
            f"    while not os.path.exists({str(gate)!r}):\n        __import__('time').sleep(0.02)\n    print(",
        )
        job = cluster.submit(waits, inputs=cluster.files(120), mini_batch_size=4)
        cluster.until(lambda: cluster.logged("node000", "worker_ready") == 2, "the workers run the first mini-batches")
        disk.fill(but=1_000_000)  # a fiftieth is 1.3 MB
        with pytest.raises(ApiError, match="No job is accepted now") as refusal:
            client.jobs.create({"code": str(cluster.code(SCRIPT)), "entry_script": "entry.py", "inputs": str(gate)})
        assert refusal.value.status == 507
        cluster.until(lambda: cluster.logged("node000", "disk_full") > 0, "the agent finds too little room")
        gate.touch()
        cluster.until(lambda: [node.state for node in client.nodes.list()] == ["disk_full"], "and says so to everyone")
        assert any("It waits: the volume of the cluster has" in note for note in client.jobs.get(job).notes)
        assert cluster.registry.state(job) is JobState.PROCESSING
        disk.free()
        assert_nothing_was_lost(cluster, job, 120)
        assert cluster.logged("node000", "disk_has_room") > 0


def test_a_cluster_below_its_disk_floor_takes_nothing_new_and_goes_on_with_room(
    small_disks: list[SmallDisk],
) -> None:
    wait_below_the_floor_and_go_on(small_disks)


def test_another_node_does_the_work_of_one_whose_disk_fails(tmp_path: Path) -> None:
    """Each commit of one agent fails as if its disk were full, once; no root needed."""
    with Cluster(nodes=2, failpoints=f"commit.before_sync=raise:{tmp_path / 'once'}") as cluster:
        job = cluster.submit(SCRIPT, inputs=cluster.files(120), mini_batch_size=4)
        assert_nothing_was_lost(cluster, job, 120)
        assert sum(cluster.logged(node, "disk_full") for node in cluster.nodes) == 1


def test_a_disk_that_is_full_for_the_output_delays_the_job_and_shows_no_part_of_it(
    small_disks: list[SmallDisk],
) -> None:
    with Cluster() as cluster:
        disk = SmallDisk(cluster.home / "out")
        small_disks.append(disk)
        disk.fill(but=300_000)
        job = cluster.submit(SCRIPT, inputs=cluster.files(120), mini_batch_size=4, output=str(disk.folder))
        cluster.until(lambda: cluster.logged("concatenator", "disk_full") >= 2, "it was tried twice")
        assert cluster.registry.state(job) is JobState.FINALIZING
        assert [path.name for path in disk.folder.iterdir() if not path.name.startswith(".")] == ["ballast"]
        disk.free()
        assert_nothing_was_lost(cluster, job, 120)
        assert [path.name for path in disk.folder.iterdir()] == ["parallel_run_step.txt"]


def test_a_disk_that_fails_at_the_outputs_sync_delays_the_job(tmp_path: Path) -> None:
    with Cluster(failpoints=f"concatenate.before_sync=raise:{tmp_path / 'once'}") as cluster:
        job = cluster.submit(SCRIPT, inputs=cluster.files(8), mini_batch_size=4)
        assert_nothing_was_lost(cluster, job, 8)
        assert cluster.logged("concatenator", "disk_full") == 1


def test_rows_that_are_not_what_was_committed_are_made_again_at_once() -> None:
    """Waiting helps against a full disk, not against damage."""
    script = textwrap.dedent("""
        import os
        def run(mini_batch):
            (part,) = [path for fd in os.listdir("/proc/self/fd")
                       if "/parts/" in (path := os.path.realpath(f"/proc/self/fd/{fd}"))]
            if os.path.getsize(part):  # one in flight: all that is there was committed
                with open(part, "r+b") as file:
                    file.write(b"damage")
            return mini_batch
    """)
    with Cluster(slots=1) as cluster:
        inputs = cluster.files(8)
        job = cluster.submit(script, inputs=inputs, mini_batch_size=1, look_ahead=False)
        result = cluster.result(job, timeout_s=30)
        assert result.state is JobState.COMPLETED
        assert result.warnings == ["The rows of 1 mini-batch were lost; these are run again."]
        assert Path(result.output).read_text().splitlines() == [str(path) for path in sorted(inputs.iterdir())]
