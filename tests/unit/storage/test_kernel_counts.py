"""What the kernel says of disks and of NFS, as a node with both would have it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from parallelrun.progress.storage import storage_lines
from parallelrun_core.answers.reports import StorageRequests
from parallelrun_core.folder.storage_report import RequestReport, fields_of
from parallelrun_core.storage.local.kernel_counts import FileSystem, KernelCounts, counts_of, mounts_of

MOUNTS = """\
22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
23 22 0:44 / /data rw,relatime shared:1 - nfs4 filer:/export rw,vers=4.2
24 22 0:45 / /more\\040data ro - nfs filer:/more ro,vers=3
25 22 0:46 /vol /pool rw - btrfs /dev/vdb rw
26 22 0:47 / /memory rw - tmpfs tmpfs rw
"""
DISKS = """\
 254       1 vda1 100 7 2048 500 9 9 9 9 0 9 9
 254      16 vdb 50 0 800 25 9 9 9 9 0 9 9
"""
NFS = """\
device tmpfs mounted on /memory with fstype tmpfs
device filer:/export mounted on /data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 10 12 0 2000 40960 1 50 80 1
\t       WRITE: 3 3 0 2000 40960 1 50 80 0
\t        OPEN: 5 5 0 900 900 0 9 10 0
\t     GETATTR: 7 7 0 700 700 0 6 7 0
device filer:/more mounted on /more\\040data with fstype nfs statvers=1.1
\tper-op statistics
\t        READ: 2 2 0 100 8192 0 3 4
\t      LOOKUP: 4 4 0 100 100 0 8 8
"""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(MOUNTS)
    (tmp_path / "self" / "mountstats").write_text(NFS)
    (tmp_path / "diskstats").write_text(DISKS)
    return tmp_path


def test_kernel_counts_are_those_of_the_file_systems_of_the_folders(proc: Path) -> None:
    mounts = mounts_of(["/data/in/*.csv", "/data/other", "/pool/x", "/memory/y", "/home/z", "/more data/a"], proc)
    assert [mount.label for mount in mounts] == [
        "/ (ext4)", "/data (nfs4)", "/memory (tmpfs)", "/more data (nfs)", "/pool (btrfs)"
    ]  # fmt: skip
    assert counts_of(mounts, proc) == {
        ("/ (ext4)", "read"): KernelCounts(100, 2048 * 512, seconds=0.5),
        ("/data (nfs4)", "read"): KernelCounts(10, 40960, 1, 2, 0.08),
        ("/data (nfs4)", "open"): KernelCounts(5, 0, 0, 0, 0.01),
        ("/data (nfs4)", "stat"): KernelCounts(7, 0, 0, 0, 0.007),
        ("/more data (nfs)", "read"): KernelCounts(2, 8192, 0, 0, 0.004),
        ("/more data (nfs)", "lookup"): KernelCounts(4, 0, 0, 0, 0.008),
        ("/pool (btrfs)", "read"): KernelCounts(50, 800 * 512, seconds=0.025),
    }


def test_kernel_counts_are_nothing_where_the_system_says_nothing(tmp_path: Path, proc: Path) -> None:
    assert mounts_of(["/data"], tmp_path / "nowhere") == []
    (proc / "diskstats").write_text("what is this\n")
    assert counts_of([FileSystem("/data", "nfs4", "0:44", "filer:/export")], proc) == {}


def test_a_report_has_what_was_read_of_file_systems_since_it_began(
    proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import parallelrun_core.folder.storage_report as reports

    mounts = mounts_of(["/data"], proc)
    monkeypatch.setattr(reports, "mounts_of", lambda _: mounts)
    monkeypatch.setattr(reports, "counts_of", lambda each: counts_of(each, proc))
    report = RequestReport(tmp_path / "logs", "n0", ["/data/in"])
    report.write()
    assert not (tmp_path / "logs").exists()
    (proc / "self" / "mountstats").write_text(
        NFS.replace("READ: 10 12 0 2000 40960 1 50 80 1", "READ: 30 34 0 0 81920 1 0 180 1")
    )
    report.write()
    (file,) = (tmp_path / "logs" / "sys" / "storage").iterdir()
    (line,) = fields_of(file.read_text())
    names = ("store", "operation", "requests", "bytes", "retries", "mean_ms", "p50_ms")
    assert {name: line.get(name) for name in names} == {
        "store": "/data (nfs4)", "operation": "read", "requests": "20", "bytes": "40960", "retries": "2",
        "mean_ms": "5.000", "p50_ms": None,
    }  # fmt: skip


def test_storage_lines_name_the_store_with_most_bytes_first_and_the_slow_node() -> None:
    def item(node: str, store: str, operation: Literal["get", "read", "open"], *figures: float) -> StorageRequests:
        requests, size, mean_ms = figures
        return StorageRequests(
            node=node, store=store, operation=operation, since="", until="", requests=int(requests), bytes=int(size),
            failures=0, throttled=0, retries=0, mean_ms=mean_ms,
        )  # fmt: skip

    lines = storage_lines([
        item("a", "s3://bucket", "get", 4, 1 << 20, 10.0),
        item("a", "/data (nfs4)", "read", 100, 3 << 20, 2.0),
        item("b", "/data (nfs4)", "read", 100, 3 << 20, 8.0),
        item("b", "/data (nfs4)", "open", 100, 0, 8.0),
    ])  # fmt: skip
    assert lines == [
        "/data (nfs4): 200 reads, 6.3 MB, 5.0 ms each; slowest on node b, 8.0 ms",
        "s3://bucket: 4 reads, 1.0 MB, 10.0 ms each",
    ]
