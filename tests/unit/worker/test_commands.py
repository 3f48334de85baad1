"""What a command is given, and how its end is told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from parallelrun_worker.commands.place import make_place
from parallelrun_worker.commands.runner import CommandFailed, last_lines


def test_the_place_of_a_command_is_a_copy_that_it_may_change(tmp_path: Path) -> None:
    code, place = tmp_path / "code", tmp_path / "place"
    (code / "package").mkdir(parents=True)
    (code / "package/module.py").write_bytes(b"x" * 3_000_000)
    (code / "run.sh").write_text("echo")
    (code / "package/module.py").chmod(0o444)
    (code / "run.sh").chmod(0o555)
    for _ in range(2):
        make_place(str(place), str(code), {"outputs": str(tmp_path), "logs": "", "package": "/nowhere"})
        assert sorted(path.name for path in place.iterdir()) == ["outputs", "package", "run.sh"]
        assert (place / "outputs").readlink() == tmp_path
        assert (place / "package/module.py").read_bytes() == b"x" * 3_000_000
        assert (place / "package/module.py").stat().st_mode & 0o777 == 0o644
        assert os.access(place / "run.sh", os.X_OK)
        (place / "package/module.py").write_text("changed")
        (place / "made").touch()


@pytest.mark.parametrize(
    "status, lines, message",
    [
        (1, [], "The command ended with exit code 1."),
        (2, ["Traceback", "ValueError: bad", " "], "The command ended with exit code 2: ValueError: bad"),
        (-signal.SIGTERM, [], "The command was ended by signal 15 (SIGTERM)."),
        (137, [], "exit code 137 (a program in it was ended by signal 9, SIGKILL, perhaps by the kernel because"),
        (255, [], "The command ended with exit code 255."),
        (1, ["x" * 1000], f"The command ended with exit code 1: {'x' * 500}"),
    ],
)
def test_how_a_command_ended_is_told_with_its_last_line(status: int, lines: list[str], message: str) -> None:
    failed = CommandFailed(status, [], lines)
    assert message in str(failed)
    assert str(failed) == str(CommandFailed(status, lines, []))
    assert len(str(failed)) < 600
    assert failed.category == ("SIGNAL" if status < 0 else "EXITED")


def lines_of(file: Path, begin: int = 0) -> list[str]:
    with file.open("rb") as opened:
        return last_lines(opened.fileno(), begin)


def test_the_last_lines_are_those_of_this_try_and_few(tmp_path: Path) -> None:
    file = tmp_path / "stderr"
    file.write_text("earlier\n")
    assert lines_of(file, begin=8) == []
    with file.open("a") as more:
        more.write("".join(f"{number}\n" for number in range(100)))
    assert lines_of(file, begin=8) == [str(number) for number in range(75, 100)]
    file.write_text("cut\n")  # by the limit for logs: it is shorter than it was
    assert lines_of(file, begin=8) == ["cut"]
    file.write_bytes(b"\n\xff 10%\r20%\r30%\r\n\n")
    assert lines_of(file) == ["30%"]
