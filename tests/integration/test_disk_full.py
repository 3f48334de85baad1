"""A disk that is full costs time, and nothing else: no try, no row, no torn output; and nobody has to lend a hand."""

from __future__ import annotations

import os
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun import Client
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
    """A disk of 4 MB with all but so many bytes taken by a file that a test can remove."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
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
        assert result.warnings == ["The rows of 1 mini-batches were lost; these are run again."]
        assert Path(result.output).read_text().splitlines() == [str(path) for path in sorted(inputs.iterdir())]
