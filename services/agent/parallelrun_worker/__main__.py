"""`python [-P] -m parallelrun_worker RING CONTROL RESULTS PART CONFIG AGENT`: how an agent starts a worker.

RING, CONTROL, RESULTS, PART: file descriptors (see frames.py); PART is -1 when no rows are kept. CONFIG: path of a JSON
file (see docs/protocol.md). AGENT: the agent's process id.

`… template …` in place of these begins a process that workers are forked from (templates/template.py).
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap
    from types import FrameType

    from parallelrun_worker.diagnostics.prints import PrintMarks
    from parallelrun_worker.frames import WorkerConfig

BATCH_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
"""The variables that Slurm, PBS and LSF set in each job."""


def main() -> int:
    """Prepare the process for the user's code, then run it."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working folder: what the script writes there must not be imported
    from parallelrun_worker.frames import TEMPLATE

    arguments = sys.argv[1:]
    atexit.register(_end_quietly)  # registered first, so called last
    if arguments[0] == TEMPLATE:
        arguments = _serve_as_template(*arguments[1:])
    return _work(arguments)


def _serve_as_template(channel: str, agent: str, *script: str) -> list[str]:
    """Fork workers for as long as there is an agent; returns the arguments of a worker, in that worker."""
    import socket

    from parallelrun_worker.templates.template import WorkerTemplate

    _die_with_the_agent(int(agent))
    _prefer_me_when_memory_runs_out()
    template = WorkerTemplate(socket.socket(fileno=int(channel)), int(agent), *script[:3])
    return template.serve(script[3:])


def _work(arguments: list[str]) -> int:
    """Be a worker: see the module's docstring for the arguments."""
    ring_fd, control, results, part = map(int, arguments[:4])
    config_path, agent = arguments[4], int(arguments[5])
    _die_with_the_agent(agent)
    _keep_daemons()
    _leave_the_terminal()
    if any(name in os.environ for name in BATCH_JOBS):
        _leave_sigterm_to_the_agent()
    _prefer_me_when_memory_runs_out()
    import json
    import mmap

    from parallelrun_worker.frames import RING_SIZE, WorkerConfig

    with open(config_path) as file:
        config = WorkerConfig(**json.load(file))
    for fd in (control, results, part, config.stdout, config.stderr, config.stacks, config.permits):
        if fd >= 0:
            os.set_inheritable(fd, False)  # the user's child processes must not keep the agent waiting
    ring = mmap.mmap(ring_fd, RING_SIZE)
    os.close(ring_fd)
    prints = _set_up_streams(config)
    if config.nice is not None:
        _be_nice(config.nice)

    if config.command:
        from parallelrun_worker.commands.runner import CommandRunner

        return CommandRunner(config, ring, control, results, part).main(config)
    return _run_script(config, ring, (control, results, part), prints)


def _run_script(config: WorkerConfig, ring: mmap.mmap, fds: tuple[int, int, int], prints: PrintMarks) -> int:
    """Run the entry script until the agent ends this worker. A command needs none of what is imported here."""
    from parallelrun_worker.execution.runner import Runner
    from parallelrun_worker.script_api import entry_script
    from parallelrun_worker.tracking.imports import MlflowImport

    if config.in_flight > 1:
        from parallelrun_worker.execution.concurrent_runner import ConcurrentRunner as Runner

    if config.permits >= 0:
        from parallelrun_worker.script_api.permits import PermitClient

        PermitClient.process = PermitClient(config.permits)
    from parallelrun_worker.script_api.costs import CostCounter

    CostCounter.process = CostCounter(ring)
    entry_script.provide(config, prints)
    MlflowImport.watch()
    try:
        return Runner(ring, *fds, prints).main(config)
    finally:
        _interrupt_what_hangs(config.exit_s, config.stderr)
        _flush_open_files()  # the agent may end what follows before it is done


def _set_up_streams(config: WorkerConfig) -> PrintMarks:
    """Send Python's own streams to the user's files; 1 and 2 are for children that are started without redirection."""
    import faulthandler
    from functools import partial

    from parallelrun_worker import frames
    from parallelrun_worker.diagnostics.prints import PrintMarks
    from parallelrun_worker.log_files import forgiving

    faulthandler.enable(config.stderr)
    faulthandler.register(frames.DUMP_STACKS, config.stderr)
    if config.stacks >= 0:
        from parallelrun_worker.diagnostics.stacks import show_on_signals

        show_on_signals(config.stacks)
    prints = PrintMarks("" if config.command else os.path.splitext(config.log)[0])
    sys.stdout = forgiving(config.stdout, sys.stdout, partial(prints.stdout.note, config.stdout))
    sys.stderr = forgiving(config.stderr, sys.stderr, partial(prints.stderr.note, config.stderr))
    if not config.command:  # nothing of the user's runs in this process
        import logging

        logging.basicConfig(level=config.logging_level, stream=sys.stdout)
    return prints


def _be_nice(priority: int) -> None:
    try:
        os.nice(priority)
    except OSError as error:  # only root may lower the value
        print(f"[parallelrun] nice {priority}: {error}", file=sys.stderr)


def _die_with_the_agent(agent: int) -> None:
    """Have the kernel end this process when the agent is killed, which can't do it then."""
    import ctypes
    import signal

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != agent:  # it died before that call
        os._exit(1)


def _keep_daemons() -> None:
    """Keep daemons below this process for as long as it lives, so that the agent knows which worker they belong to."""
    import ctypes

    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def _leave_the_terminal() -> None:
    """Have no terminal, where the agent has one: a script that asks its user something would be stopped, and hang."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCNOTTY)
    os.close(terminal)


def _leave_sigterm_to_the_agent() -> None:
    """Go on after SIGTERM: a batch system sends it to all processes of a job that it ends, and the agent ends this one
    in time.

    What this process starts or forks ends by SIGTERM as ever, also by one that comes while it is being forked.
    """
    import signal
    from _thread import get_ident

    term = signal.SIGTERM
    masks: dict[int, set[int]] = {}

    def go_on(_signal: int, _frame: FrameType | None) -> None:
        pass

    def end_by_it() -> None:
        if signal.getsignal(term) is go_on:
            signal.signal(term, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop(get_ident()))

    def hold() -> None:
        masks[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, {term})

    signal.signal(term, go_on)
    os.register_at_fork(
        before=hold,
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop(get_ident())),
        after_in_child=end_by_it,
    )


def _prefer_me_when_memory_runs_out() -> None:
    """The kernel should end the worker that uses the memory, not the agent that reports it."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass


def _interrupt_what_hangs(patience_s: float, stderr: int) -> None:
    """Interrupt whatever Python waits for when it exits, a thread or an exit handler, so that what follows is done.

    The agent kills what can't be interrupted.
    """
    import faulthandler
    import signal

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        faulthandler.dump_traceback(stderr)  # of all threads: the exception only shows that one is waited for
        raise TimeoutError(f"Interrupted: the process did not exit within {patience_s:g} s.")

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, patience_s, patience_s)


def _end_quietly() -> None:
    """Stop interrupting: a signal while the last objects are finalized would end the process at once."""
    import signal

    _flush_open_files()
    signal.setitimer(signal.ITIMER_REAL, 0)


def _flush_open_files() -> None:
    """Write what the script has left in buffers: Python drops it when a running thread still holds the file."""
    import gc
    import io

    # What a template has had before it was forked, these two are, is not among the objects.
    for file in (*gc.get_objects(), sys.__stdout__, sys.__stderr__):
        if type(file) in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom):
            try:
                file.flush()
            except ValueError:
                pass  # it is closed
            except Exception as error:  # the script's own raw file may raise anything
                print(f"[parallelrun] {file}: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
