"""The nodes of a job and of the cluster: all side by side, what each uses, and how one is drained."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.studio.chromium import NARROW, Tab
from tests.studio.cluster import TOKEN, Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_nodes_of_a_job_stand_side_by_side_with_what_they_use(opened: Tab, shown: Studio) -> None:
    job = shown.jobs["good"]
    opened.open(f"/jobs/{job}/resources")
    table = opened.page.get_by_role("region", name="Table: What the nodes use")
    total, node = table.locator("tbody tr").all()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    usage = httpx.get(f"{shown.url}/v1/jobs/{job}/node-usage", headers=headers, trust_env=False).json()
    (measured,) = usage["items"]
    memory = re.compile(rf"GiB of {measured['memory_bytes'] / 2**30:.1f}")
    total.get_by_text("All 1 node at work").wait_for()
    for row in (total, node):
        row.get_by_text(re.compile(rf"% of {measured['cpus']:g}$")).wait_for()
        row.get_by_text(memory).wait_for()
        row.get_by_text(re.compile(r"read .*/s, written .*/s")).wait_for()
        row.get_by_text(re.compile(r"in .*/s, out .*/s")).wait_for()
    node.get_by_role("img", name=re.compile("The last .*: CPU .* to .*, memory")).wait_for()
    opened.resize(*NARROW)
    assert opened.overflow() <= 0
