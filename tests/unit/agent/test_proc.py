"""What /proc says about processes, whatever their names."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

from parallelrun_agent.node.proc import process_ids, stat_of


def test_this_process_is_what_it_is_elsewhere_said_to_be() -> None:
    found, known = stat_of(os.getpid()), psutil.Process()
    assert found is not None
    assert os.getpid() in process_ids()
    assert found.parent == os.getppid()
    assert abs(found.cpu_s - sum(known.cpu_times()[:2])) < 5
    assert found.resident_bytes > 1 << 20
    assert abs(psutil.boot_time() + found.started / os.sysconf("SC_CLK_TCK") - known.create_time()) < 5


def test_brackets_and_spaces_in_a_name_are_part_of_it() -> None:
    name = ") S 1 (a b"
    code = (
        f"import ctypes; ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0); print('named', flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"named\n"
        found = stat_of(process.pid)
        process.stdin.write(b"\n")
    assert found is not None
    assert (found.name, found.parent) == (name, os.getpid())
    assert stat_of(process.pid) is None
