"""What the nodes of a job use, side by side and together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import Logs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

COLUMNS = (
    "Utc Time,Cpu Percent,Memory Total (MB),Memory Used (MB),Memory Used Percent,Disk Io Read (MB),Disk Io Write (MB),"
    "Network Sent (MB),Network Recv (MB),Cpu Limit,Cpus"
)
GPU_COLUMNS = "Utc Time,Gpu,Name,Utilization Percent,Memory Total (MB),Memory Used (MB)"


def table(
    folder: JobFolder, node: str, *rows: str, name: str = "node_resource_usage.csv", columns: str = COLUMNS
) -> None:
    perf = Logs(folder.logs).perf(node)
    perf.mkdir(parents=True, exist_ok=True)
    (perf / name).write_text("\n".join([columns, *rows]) + "\n2027-01-")


def test_node_usage_counts_a_machine_once_however_many_nodes_run_on_it(
    api: httpx.Client, root: Path, job_id: str
) -> None:
    folder, columns = JobFolder(root, job_id), f"{COLUMNS},Host"
    for node, host in (("node1", "one"), ("node2", "one"), ("node3", "other")):
        row = f'2027-01-15T08:00:00.000000,50.0,1024.0,100.0,10.0,0.0,5.0,1.0,1.0,,2,"{host}"'
        table(folder, node, row, columns=columns)
    report = api.get(f"/v1/jobs/{job_id}/node-usage").json()
    assert (report["nodes_in_total"], report["machines_in_total"]) == (3, 2)
    assert (report["total"]["cpus"], report["total"]["memory_bytes"]) == (4, 2048 << 20)
    assert [each["host"] for each in report["items"]] == ["one", "one", "other"]


def test_node_usage_has_all_nodes_side_by_side_and_their_total(api: httpx.Client, root: Path, job_id: str) -> None:
    folder = JobFolder(root, job_id)
    table(
        folder,
        "node0",
        "2027-01-15T08:00:00.000000,10.0,1024.0,100.0,10.0,0.0,5.0,1.0,1.0,,6",
        "2027-01-15T08:00:10.000000,50.0,1024.0,512.0,50.0,20.0,5.0,1.0,11.0,,6",
    )
    table(folder, "node1", "2027-01-15T08:00:12.000000,100.0,2048.0,1024.0,50.0,0.0,0.0,0.0,0.0,2.00,8")
    gpus = ["2027-01-15T08:00:10.000000,0,L4,80,1000.0,500.0", "2027-01-15T08:00:10.000000,1,L4,40,1000.0,100.0"]
    table(folder, "node0", *gpus, name="node_gpu_usage.csv", columns=GPU_COLUMNS)
    table(folder, "gone", "2027-01-15T07:00:00.000000,1.0,1024.0,9.0,1.0,0.0,0.0,0.0,0.0,,4")
    (Logs(folder.logs).perf("node0") / "processes_cpu_memory_usage").mkdir()

    report = api.get(f"/v1/jobs/{job_id}/node-usage").json()
    by_name = {each["node"]: each for each in report["items"]}
    assert list(by_name) == ["gone", "node0", "node1"]
    node0 = by_name["node0"]
    assert (node0["at"], node0["cpus"], node0["cpu"]) == ("2027-01-15T08:00:10.000Z", 6, 0.5)
    assert (node0["memory_used_bytes"], node0["memory_bytes"]) == (512 << 20, 1024 << 20)
    assert (node0["gpus"], node0["gpu"], node0["gpu_memory_used_bytes"]) == (2, 0.6, 600 << 20)
    assert node0["disk_read_bytes_per_s"] == 2 << 20
    assert node0["network_received_bytes_per_s"] == 1 << 20
    assert node0["history"]["cpu"] == [0.1, 0.5]
    assert by_name["node1"]["cpus"] == 2
    assert by_name["node1"]["disk_read_bytes_per_s"] is None

    total = report["total"]
    assert report["nodes_in_total"] == 2  # what has been silent for an hour uses nothing now
    assert (total["cpus"], total["cpu"]) == (8, 0.625)
    assert (total["memory_used_bytes"], total["memory_bytes"]) == (1536 << 20, 3072 << 20)
    assert (total["gpus"], total["gpu"]) == (2, 0.6)

    few = api.get(f"/v1/jobs/{job_id}/node-usage?limit=1").json()
    assert [each["node"] for each in few["items"]] == ["gone"]
    assert (few["nodes_total"], few["total"]) == (3, total)


def test_node_usage_of_a_job_that_measures_nothing(api: httpx.Client, job_id: str) -> None:
    report = api.get(f"/v1/jobs/{job_id}/node-usage").json()
    assert (report["items"], report["nodes_total"], report["total"]["cpus"]) == ([], 0, None)


def test_node_usage_reads_only_the_end_of_a_long_table(api: httpx.Client, root: Path, job_id: str) -> None:
    rows = [
        f"2027-01-15T08:{each // 60:02}:{each % 60:02}.000000,{each % 100}.0,10.0,5.0,50.0,0,0,0,0,,4"
        for each in range(3600)
    ]
    table(JobFolder(root, job_id), "node0", *rows)
    (node,) = api.get(f"/v1/jobs/{job_id}/node-usage").json()["items"]
    assert (node["at"], node["cpu"]) == ("2027-01-15T08:59:59.000Z", 0.99)
    assert len(node["history"]["at"]) == 60
