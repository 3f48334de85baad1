"""Logs of a job as one: what is asked for is read, and nothing else is in memory."""

from __future__ import annotations

import os
import re
import tracemalloc
from pathlib import Path

from parallelrun_api.azure.blobs.joined import JoinedLogs
from parallelrun_api.views.files import ServedFolder

PRINTED = re.compile(r"user/stdout/.*")


def joined(folder: Path) -> JoinedLogs:
    return JoinedLogs(ServedFolder(anchor=folder, beneath="logs"), PRINTED)


def whole(logs: JoinedLogs, step: int) -> bytes:
    text = b""
    while part := logs.read(step, len(text)) if len(text) < logs.size else b"":
        text += part
    return text


def printed(folder: Path) -> Path:
    path = folder / "logs" / "user" / "stdout"
    path.mkdir(parents=True)
    return path


def test_logs_follow_each_other_however_they_are_read(tmp_path: Path) -> None:
    folder = printed(tmp_path)
    for name, text in (("a", "one\n"), ("b", ""), ("c", "two\nthree\n")):
        (folder / f"{name}.txt").write_text(text)
    (folder.parent / "error.txt").write_text("not among them\n")
    for step in (1, 3, 4, 1000):
        assert whole(joined(tmp_path), step) == b"one\ntwo\nthree\n"
    assert joined(tmp_path / "nowhere").size == 0


def test_what_is_not_the_jobs_own_is_left_out(tmp_path: Path) -> None:
    folder = printed(tmp_path)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret of others\n")
    (folder / "a.txt").write_text("own\n")
    (folder / "b.txt").symlink_to(secret)
    os.link(secret, folder / "c.txt")
    os.mkfifo(folder / "d.txt")
    (folder / "e.txt").write_text("last\n")
    assert whole(joined(tmp_path), 1000) == b"own\nlast\n"


def test_a_log_without_an_end_takes_no_memory_and_ends_with_a_word(tmp_path: Path) -> None:
    with (printed(tmp_path) / "endless.txt").open("w") as file:
        file.truncate(1 << 40)
    tracemalloc.start()
    many = [joined(tmp_path) for _ in range(50)]
    assert all(len(logs.read(1000, 100_000_000)) == 1000 for logs in many)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    end = many[0].read(1 << 20, 128 << 20)
    assert b"there is more" in end
    assert many[0].size == (128 << 20) + len(end)
    assert not [path for path in Path("/proc/self/fd").iterdir() if "joined" in _target(path)]


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


def test_a_log_that_becomes_shorter_is_filled_with_spaces(tmp_path: Path) -> None:
    log = printed(tmp_path) / "a.txt"
    log.write_text("a long line\n")
    logs = joined(tmp_path)
    log.write_text("a\n")
    assert whole(logs, 5) == b"a\n" + 10 * b" "
    log.unlink()
    assert whole(logs, 5) == 12 * b" "
