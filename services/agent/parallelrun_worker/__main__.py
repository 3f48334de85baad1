"""`python [-P] -m parallelrun_worker CONTROL RESULTS PART CONFIG AGENT`: how an agent starts a worker.

CONTROL, RESULTS, PART: file descriptors (see frames.py); PART is -1 when no rows are kept. CONFIG: path of a JSON
file (see docs/protocol.md). AGENT: the agent's process id.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType


def main() -> int:
    """Make the process fit for the user's code, then run it."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working folder: what the script writes there is not to be imported
    control, results, part = map(int, sys.argv[1:4])
    config_path, agent = sys.argv[4], int(sys.argv[5])
    _die_with_the_agent(agent)
    _prefer_me_when_memory_runs_out()
    import json

    with open(config_path) as file:
        config = json.load(file)
    for fd in (control, results, part, config["stdout"], config["stderr"]):
        if fd >= 0:
            os.set_inheritable(fd, False)  # the user's child processes must not keep the agent waiting
    _set_up_streams(config)
    if config["nice"] is not None:
        _be_nice(config["nice"])

    from parallelrun_worker import entry_script
    from parallelrun_worker.runner import Runner

    entry_script.provide(config)
    atexit.register(_end_quietly)  # the first one, so the last that is called
    try:
        return Runner(control, results, part).main(config)
    finally:
        _let_nothing_hold_up_the_end(config["exit_s"], config["stderr"])
        _flush_open_files()  # the agent may end what follows before it is through


def _set_up_streams(config: dict[str, Any]) -> None:
    """Python's own streams go to the user's files; 1 and 2 stay for children that are started without redirection."""
    import faulthandler
    import logging

    from parallelrun_worker import frames
    from parallelrun_worker.log_files import forgiving

    faulthandler.enable(config["stderr"])
    faulthandler.register(frames.DUMP_STACKS, config["stderr"])
    sys.stdout, sys.stderr = forgiving(config["stdout"], sys.stdout), forgiving(config["stderr"], sys.stderr)
    logging.basicConfig(level=config["logging_level"], stream=sys.stdout)


def _be_nice(priority: int) -> None:
    try:
        os.nice(priority)
    except OSError as error:  # only root may be less nice than others
        print(f"[parallelrun] nice {priority}: {error}", file=sys.stderr)


def _die_with_the_agent(agent: int) -> None:
    """An agent that was killed can't end its workers: the kernel does.

    And what daemonises itself stays below this process for as long as it lives, so that the agent can tell whose it is.
    """
    import ctypes
    import signal

    pr_set_pdeathsig, pr_set_child_subreaper = 1, 36
    prctl = ctypes.CDLL(None).prctl
    prctl(pr_set_pdeathsig, signal.SIGKILL)
    prctl(pr_set_child_subreaper, 1, 0, 0, 0)
    if os.getppid() != agent:  # it died before the kernel knew of our wish
        os._exit(1)


def _prefer_me_when_memory_runs_out() -> None:
    """The kernel should end the worker that uses the memory, not the agent that reports it."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass


def _let_nothing_hold_up_the_end(patience_s: float, stderr: int) -> None:
    """Break off whatever Python waits for when it exits, a thread or an exit handler, so that what comes next is done.

    The agent kills what can't be broken off.
    """
    import faulthandler
    import signal

    def break_off(_signal: int, _frame: FrameType | None) -> None:
        faulthandler.dump_traceback(stderr)  # of all threads: the exception only says that one is waited for
        raise TimeoutError(f"This holds up the end of the process, and is broken off ({patience_s:g} s).")

    signal.signal(signal.SIGALRM, break_off)
    signal.setitimer(signal.ITIMER_REAL, patience_s, patience_s)


def _end_quietly() -> None:
    """Of what comes now, the last words of objects, nothing can be broken off any more: a signal would end it all."""
    import signal

    _flush_open_files()
    signal.setitimer(signal.ITIMER_REAL, 0)


def _flush_open_files() -> None:
    """Write what the script has left unwritten: Python drops it when a thread that still runs knows the file."""
    import gc
    import io

    for found in gc.get_objects():
        if type(found) in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom):
            try:
                found.flush()
            except ValueError:
                pass  # it is closed
            except Exception as error:  # what the script has put below its file may raise anything
                print(f"[parallelrun] {found}: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
