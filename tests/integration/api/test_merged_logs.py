"""The logs of all workers as one, in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def stamped(second: int, ms: int, text: str, level: str = "INFO") -> str:
    return f"2027-01-15 08:{second // 60:02}:{second % 60:02},{ms:03}|{level}|7|8|{text}\n"


@pytest.fixture
def logs(root: Path, job_id: str) -> Path:
    return JobFolder(root, job_id).logs


def write(logs: Path, path: str, text: str) -> None:
    (logs / path).parent.mkdir(parents=True, exist_ok=True)
    (logs / path).write_text(text)


def pages(api: httpx.Client, job_id: str, query: str) -> list[list[dict[str, Any]]]:
    shown: list[list[dict[str, Any]]] = []
    token: str | None = ""
    while token is not None:
        answer = api.get(f"/v1/jobs/{job_id}/merged-logs?{query}&page_token={token}")
        assert answer.status_code == 200, answer.text
        page = answer.json()
        shown.append(page["items"])
        token = page["next_page_token"]
        assert len(shown) < 2000
    return shown


def texts(api: httpx.Client, job_id: str, query: str = "") -> list[str]:
    return [line["text"] for page in pages(api, job_id, query) for line in page]


@pytest.fixture
def two_workers(logs: Path) -> None:
    write(logs, "user/stdout/n0/process000.stdout.txt", "a1\na2\nERROR:root:a3\n")
    write(logs, "sys/node/n0/process000.stdout.marks", stamped(1, 0, "0|0") + stamped(5, 0, "6|2"))
    write(logs, "user/stdout/n1/process000.stdout.txt", "b1\nb2\n")
    write(logs, "sys/node/n1/process000.stdout.marks", stamped(2, 0, "0|1") + stamped(7, 0, "3|3"))
    write(logs, "user/stderr/n1/process000.stderr.txt", "odd\n")
    write(logs, "sys/node/n1/process000.stderr.marks", stamped(3, 500, "0|1"))
    write(logs, "user/entry_script_log/n1/process000.log.txt", stamped(6, 0, "said\n    more", "WARNING"))
    write(logs, "sys/node/n1/process000.logger.marks", stamped(2, 0, "0|1") + stamped(6, 0, "0|3"))
    write(logs, "sys/node/n0/process000.txt", stamped(0, 1, "init() is done") + stamped(4, 0, "Mini-batch 0: done."))
    write(logs, "sys/master_role.1.txt", stamped(0, 0, "Term 1 begins."))
    write(logs, "user/stdout/n2/process000.stdout.txt", "")


@pytest.mark.usefixtures("two_workers")
def test_merged_logs_are_in_the_order_of_time_with_worker_level_and_mini_batch(api: httpx.Client, job_id: str) -> None:
    (lines,) = pages(api, job_id, "")
    assert [(each["text"], each["node"], each["mini_batch"], each["source"], each["level"]) for each in lines] == [
        ("a1", "n0", 0, "stdout", None),
        ("a2", "n0", 0, "stdout", None),
        ("b1", "n1", 1, "stdout", None),
        ("odd", "n1", 1, "stderr", None),
        ("ERROR:root:a3", "n0", 2, "stdout", "ERROR"),
        ("said", "n1", 3, "logger", "WARNING"),
        ("    more", "n1", 3, "logger", "WARNING"),
        ("b2", "n1", 3, "stdout", None),
    ]
    assert lines[2]["at"] == "2027-01-15T08:00:02.000Z"
    assert all(each["has_time"] for each in lines)
    whole = texts(api, job_id, "source=all")
    assert whole[:2] == ["Term 1 begins.", "init() is done"]
    assert "Mini-batch 0: done." in whole


@pytest.mark.usefixtures("two_workers")
def test_merged_logs_are_filtered_by_level_worker_and_mini_batch(api: httpx.Client, job_id: str) -> None:
    assert texts(api, job_id, "level=WARNING") == ["odd", "ERROR:root:a3", "said", "    more"]
    assert texts(api, job_id, "level=ERROR") == ["ERROR:root:a3"]
    assert (
        texts(api, job_id, "worker=n0") == texts(api, job_id, "worker=n0/process000") == ["a1", "a2", "ERROR:root:a3"]
    )
    assert texts(api, job_id, "mini_batch=3") == ["said", "    more", "b2"]
    assert texts(api, job_id, "mini_batch=0&source=all") == ["a1", "a2", "Mini-batch 0: done."]
    assert api.get(f"/v1/jobs/{job_id}/merged-logs?level=LOUD").status_code == 422


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_merged_logs_come_in_pages_from_both_ends_and_lose_no_line(api: httpx.Client, job_id: str, limit: int) -> None:
    whole = texts(api, job_id, "source=all")
    assert len(whole) == 11
    assert texts(api, job_id, f"source=all&limit={limit}") == whole
    backwards = pages(api, job_id, f"source=all&order=newest&limit={limit}")
    assert [line["text"] for page in reversed(backwards) for line in page] == whole
    token = api.get(f"/v1/jobs/{job_id}/merged-logs?limit=1").json()["next_page_token"]
    assert api.get(f"/v1/jobs/{job_id}/merged-logs?limit=1&order=newest&page_token={token}").status_code == 422


def test_merged_logs_that_are_long_lose_no_line(api: httpx.Client, job_id: str, logs: Path) -> None:
    """Blocks end in the middle of each of them; many lines share a mark, and one is longer than a block."""
    expected = []
    for node in range(3):
        text, marks = [], []
        position = 0
        for number in range(9000):
            second = number // 10
            if number % 10 == 0:
                marks.append(stamped(second, node, f"{position}|{number}"))
            line = f"{node} {number} " + "x" * (node * 40)
            text.append(line)
            position += len(line) + 1
            expected.append((second, node, number))
        write(logs, f"user/stdout/n{node}/process000.stdout.txt", "\n".join(text) + "\n")
        write(logs, f"sys/node/n{node}/process000.stdout.marks", "".join(marks))
    write(logs, "user/entry_script_log/n0/process000.log.txt", stamped(3, 999, "y" * 700_000) + stamped(4, 999, "z"))
    for order in ("oldest", "newest"):
        shown = pages(api, job_id, f"order={order}&limit=1000")
        lines = [line for page in (shown if order == "oldest" else reversed(shown)) for line in page]
        printed = [line["text"].split()[:2] for line in lines if line["source"] == "stdout"]
        assert printed == [[str(node), str(number)] for _, node, number in sorted(expected)]
        assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
        assert [line["text"][0] for line in lines if line["source"] == "logger"][-1] == "z"


def test_merged_logs_without_marks_say_that_they_have_no_time(api: httpx.Client, job_id: str, logs: Path) -> None:
    write(logs, "user/stdout/n0/process000.stdout.txt", "first\nsecond\n")
    write(logs, "sys/node/n0/process000.txt", stamped(9, 0, "Importing entry.py, then init()."))
    ((first, second),) = pages(api, job_id, "")
    assert (first["text"], first["at"], first["has_time"]) == ("first", "2027-01-15T08:00:09.000Z", False)
    assert texts(api, job_id, "limit=1") == ["first", second["text"]]
    assert texts(api, job_id, "limit=1&order=newest") == [second["text"], "first"]
