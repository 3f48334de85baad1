"""Workers that are forked from a template are as those that are started by themselves, and no template costs a row."""

from __future__ import annotations

import json
import os
import signal
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import parallelrun_worker
from parallelrun_agent.loop import EventLoop
from parallelrun_agent.workers import template_process, templates
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_agent.workers.template_process import ForkRequest, NotForked, TemplateKey, TemplateProcess
from parallelrun_agent.workers.templates import WorkerTemplates
from tests.integration.worker.template_harness import as_parent, report_of, template_of
from tests.integration.worker.worker_harness import PATIENCE_S, WorkerHarness, is_alive, key_of

pytestmark = pytest.mark.integration

Start = Callable[..., WorkerHarness]

SURROUNDINGS = """
import ctypes, gc, json, locale, logging, multiprocessing.process, os, resource, signal, sys, threading
pdeathsig = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(pdeathsig))
umask = os.umask(0)
os.umask(umask)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
SEEN = {
    "folder": os.getcwd(), "arguments": sys.argv, "command": [sys.orig_argv[:4], sys.orig_argv[-2:]],
    "thread": threading.main_thread().native_id == os.getpid(), "folder at first": multiprocessing.process.ORIGINAL_DIR,
    "log begins with it": logging._startTime > os.stat(".worker.json").st_mtime,
    "environment": dict(os.environ), "path": sys.path, "umask": umask, "garbage": [gc.isenabled(), gc.get_threshold()],
    "parent": os.getppid(), "leads its group": os.getpgid(0) == os.getpid(), "session": os.getsid(0),
    "main": sys.modules["__main__"].__spec__.name, "flags": list(sys.flags), "locale": locale.getlocale(),
    "handlers": {number: str(signal.getsignal(number)).split(" at ")[0] for number in range(1, signal.NSIG)},
    "mask": list(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))), "dies with its parent": pdeathsig.value,
    "limits": [resource.getrlimit(number) for number in range(16)],
    "status": {name: status[name] for name in
               ("Uid", "Gid", "Groups", "SigBlk", "SigIgn", "SigCgt", "CapEff", "NoNewPrivs", "Seccomp", "Threads")},
    "nice": os.nice(0), "oom": open("/proc/self/oom_score_adj").read(), "cpus": sorted(os.sched_getaffinity(0)),
    "cgroup": open("/proc/self/cgroup").read(), "timers": signal.getitimer(signal.ITIMER_REAL),
    "streams": [[type(stream).__name__, stream.encoding, stream.errors, stream.line_buffering, stream.isatty()]
                for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "open": sorted(os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in os.listdir("/proc/self/fd")
                   if os.path.lexists(f"/proc/self/fd/{fd}")),
    "inherited": sorted(fd for fd in map(int, os.listdir("/proc/self/fd")) if fd < 200 and os.path.lexists(
                        f"/proc/self/fd/{fd}") and os.get_inheritable(fd)),
}
def run(items):
    return [json.dumps(SEEN)]
"""
COMPUTING = {
    "numpy": """
        import numpy
        def run(items):
            square = numpy.eye(1200) * 2  # large enough for BLAS to share it out among threads
            return [int((square @ square).sum())]
    """,
    "pandas": """
        import pandas as pd
        def run(items):
            frame = pd.DataFrame({"key": ["a", "b"] * 1200, "value": 1})
            return [int(frame.groupby("key").value.sum().sum())]
    """,
    "pyarrow": """
        import pyarrow as pa
        import pyarrow.csv
        from pyarrow import compute
        def run(items):
            pa.set_cpu_count(4)
            lines = b"value\\n" + b"1\\n" * 2400  # in blocks, which threads of Arrow's pool parse
            options = pyarrow.csv.ReadOptions(block_size=512)
            table = pyarrow.csv.read_csv(pa.BufferReader(lines), read_options=options)
            return [compute.sum(table.group_by([]).aggregate([("value", "sum")])["value_sum"]).as_py()]
    """,
}


@pytest.fixture
def node() -> Iterator[WorkerTemplates]:
    """The templates of a node, in a loop as the agent's."""
    loop, orphans = EventLoop(), Orphans()
    orphans.begin(lambda: True)
    with as_parent():
        node_templates = WorkerTemplates(loop, orphans)
        yield node_templates
        node_templates.close()
    loop.close()


def poll(node: WorkerTemplates, until: Callable[[], bool]) -> None:
    """Go on as the agent does."""
    deadline = time.monotonic() + PATIENCE_S
    while not until():
        assert time.monotonic() < deadline
        node._loop.poll(0.05)
        node.end_unused(time.monotonic(), ())


def wait_for_template(node: WorkerTemplates, key: TemplateKey) -> None:
    assert node.is_awaited(key, time.monotonic())
    poll(node, lambda: not node.is_awaited(key, time.monotonic()))
    assert key in node._running


class EveryProcess(set[int]):
    """A set that has each process."""

    def __contains__(self, _: object) -> bool:
        return True


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def exit_code_of_another(harness: WorkerHarness, known: set[int]) -> int:
    """Wait for the end of a child that is none of these."""
    harness.until(lambda: bool(children() - known), "there is another one")
    (other,) = children() - known
    return os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])


def seen(harness: WorkerHarness) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(harness.ready().run("x").rows)
    return json.loads(json.dumps(found).replace(str(harness.logs.parent), "FOLDER"))  # type: ignore[no-any-return]


def test_a_forked_worker_finds_what_one_finds_that_is_started_by_itself(start: Start, tmp_path: Path) -> None:
    options = {"argv": ["--model", "a b"], "AZUREML_RUN_ID": "job_1", "OWN": "of this worker"}
    alone = seen(start(SURROUNDINGS, **options))
    with template_of(tmp_path / "code", SURROUNDINGS) as template:
        assert report_of(template) == ""
        forked = start(SURROUNDINGS, template=template, **options)
        assert forked.worker.is_forked
        assert seen(forked) == alone


@pytest.mark.parametrize("package, total", [("numpy", 4800), ("pandas", 2400), ("pyarrow", 2400)])
def test_a_package_that_workers_share_computes_in_each(start: Start, tmp_path: Path, package: str, total: int) -> None:
    with template_of(tmp_path / "code", COMPUTING[package]) as template:
        assert report_of(template) == ""
        for _ in range(2):
            harness = start(COMPUTING[package], template=template).ready()
            assert harness.worker.is_forked
            assert harness.run("x").rows == f"{total}\n".encode()


def test_no_two_workers_draw_the_same_at_random(start: Start, tmp_path: Path) -> None:
    script = """
        import json, multiprocessing, random, tempfile, uuid
        import numpy
        import numpy.random
        def run(items):
            names = tempfile._get_candidate_names()
            return [json.dumps([random.random(), numpy.random.random(), numpy.random.default_rng().random(),
                                str(uuid.uuid4()), next(names), multiprocessing.current_process().authkey.hex()])]
    """
    with template_of(tmp_path / "code", script) as template:
        assert report_of(template) == ""
        first, second = (json.loads(start(script, template=template).ready().run("x").rows) for _ in range(2))
    assert all(one != other for one, other in zip(first, second, strict=True)), (first, second)


def test_no_worker_looks_through_what_its_template_has_imported(start: Start, tmp_path: Path) -> None:
    script = """
        import gc
        import pandas
        def run(items):
            return [sum(type(each) is type for each in gc.get_objects())]
    """
    with template_of(tmp_path / "code", script) as template:
        assert report_of(template) == ""
        assert int(start(script, template=template).ready().run("x").rows) < 1000


def test_a_forked_worker_that_hangs_when_it_exits_has_written_what_was_in_buffers(start: Start, tmp_path: Path) -> None:
    script = """
        import atexit, sys, time
        def hang():
            while True:
                try:
                    time.sleep(10)
                except TimeoutError:
                    pass
        def run(items):
            return items
        def shutdown():
            atexit.register(hang)
            sys.__stdout__.write("was in a buffer")
    """
    with template_of(tmp_path / "code", script) as template:
        assert report_of(template) == ""
        harness = start(script, template=template).ready()
        harness.worker.end()
        harness.until(lambda: harness.child_stdout.read_text() == "was in a buffer", "it is written")
        harness.worker.kill()
        assert harness.exited() == -signal.SIGKILL


def test_nothing_of_the_user_runs_in_a_template(start: Start, tmp_path: Path) -> None:
    script = f"import json\nopen({str(tmp_path / 'ran')!r}, 'a').write('script ')\ndef run(items): return items"
    with template_of(tmp_path / "code", script) as template:
        assert report_of(template) == ""
        assert not (tmp_path / "ran").exists()
        start(script, template=template).ready()
        assert (tmp_path / "ran").read_text() == "script "


def test_a_template_whose_environment_runs_something_at_once_is_not_forked(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import os")
    env = {"PYTHONPATH": str(tmp_path / "own")}
    with template_of(tmp_path / "code", "def run(items): return items", env) as template:
        assert report_of(template) == "its environment has a sitecustomize"


def test_a_package_that_is_installed_later_ends_a_template(node: WorkerTemplates, start: Start, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    script = "import json\ndef run(items): return items"
    env = {"PYTHONPATH": str(packages)}
    key = key_of(tmp_path / "code", **env)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "score.py").write_text(script)

    def begin() -> WorkerHarness:
        return start(script, fork=lambda _, request: node.fork(key, request), **env).ready()

    wait_for_template(node, key)
    assert begin().worker.is_forked
    (packages / "new.py").touch()
    assert not begin().worker.is_forked
    assert not node._running
    wait_for_template(node, key)
    assert begin().worker.is_forked


def test_a_template_that_says_more_than_it_may_is_ended(node: WorkerTemplates, tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text("def run(items): return items")
    key = key_of(tmp_path)
    wait_for_template(node, key)
    node._running[key].process.report = lambda: ""  # type: ignore[method-assign]
    node._on_report(key)
    assert not node._running
    assert node.end_unused(time.monotonic(), ()), "it is known that one has ended"
    assert not node.end_unused(time.monotonic(), ())


def test_no_template_takes_memory_that_workers_need(
    node: WorkerTemplates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "score.py").write_text("def run(items): return items")
    key = key_of(tmp_path)
    for available, is_started in ((500 << 20, False), (None, True)):
        monkeypatch.setattr(templates, "available_bytes", lambda available=available: available)
        assert node.is_awaited(key, time.monotonic()) is is_started


@pytest.mark.parametrize("folder", ["code", "on PYTHONPATH"])
def test_a_module_of_the_user_is_not_imported_by_a_template(tmp_path: Path, folder: str) -> None:
    code, own = tmp_path / "code", tmp_path / folder
    own.mkdir()
    (own / "fractions.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    env = {"PYTHONPATH": str(own)} if own != code else {}
    with template_of(code, "import json\nimport statistics\ndef run(items): return items", env) as template:
        assert report_of(template) == "the user has a module fractions of their own"
    assert not (tmp_path / "ran").exists()


def test_a_worker_that_nobody_waits_for_any_more_runs_nothing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"open({str(tmp_path / 'ran')!r}, 'a').write('x')\ndef run(items): return items"
    with template_of(tmp_path / "code", script) as template:
        assert report_of(template) == ""
        monkeypatch.setattr(template_process, "_ANSWER_S", 0.2)
        os.kill(template.pid, signal.SIGSTOP)

        def fork(_key: object, request: ForkRequest) -> int:
            with pytest.raises(NotForked):
                template.fork(request)
            return -1

        harness = start(script, fork=fork).ready()
        assert not harness.worker.is_forked
        others = children()
        os.kill(template.pid, signal.SIGCONT)
        assert exit_code_of_another(harness, others) == 1, "it is forked, though late"
    assert (tmp_path / "ran").read_text() == "x"


def test_a_process_that_is_something_else_already_is_no_worker(start: Start, tmp_path: Path) -> None:
    script = "def run(items): return items"
    orphans = Orphans()
    orphans._workers = EveryProcess()
    with template_of(tmp_path / "code", script, orphans=orphans) as template:
        assert report_of(template) == ""

        def fork(_key: object, request: ForkRequest) -> int:
            with pytest.raises(NotForked, match="is no new worker"):
                template.fork(request)
            return -1

        others = children()
        harness = start(script, fork=fork).ready()
        assert harness.run("x").rows == b"x\n"
        assert exit_code_of_another(harness, others | {harness.worker.pid}) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_template_that_is_killed_or_hangs_costs_nothing(
    node: WorkerTemplates, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(template_process, "_ANSWER_S", 1.0)
    script = "def run(items): return items"
    key = key_of(tmp_path / "code")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "score.py").write_text(script)
    wait_for_template(node, key)
    pid = node._running[key].process.pid

    def begin() -> WorkerHarness:
        return start(script, fork=lambda _, request: node.fork(key, request)).ready()

    first = begin()
    assert first.worker.is_forked
    os.kill(pid, number)
    second = begin()
    assert not second.worker.is_forked
    assert [each.run("x").rows for each in (first, second)] == [b"x\n"] * 2, "what it has forked goes on"
    assert not is_alive(pid)
    assert not node.is_awaited(key, time.monotonic())
    assert not node._running, "no other one is tried"


def test_templates_are_few_and_end_when_nobody_uses_them(node: WorkerTemplates, tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text("def run(items): return items")
    keys = [key_of(tmp_path, NUMBER=str(number)) for number in range(6)]
    now = time.monotonic()
    assert [node.is_awaited(key, now) for key in keys] == [True] * 4 + [False] * 2, "none is ended that is waited for"
    poll(node, lambda: not any(node.is_awaited(key, now) for key in keys[:4]))
    assert not any(node.is_awaited(key, now) for key in keys[4:]), "none is ended that is about to be forked"
    assert list(node._running) == keys[:4]
    now = time.monotonic() + 60.0
    assert all(node.is_awaited(key, now) for key in keys[4:])
    assert list(node._running)[-2:] == keys[4:]
    assert len(node._running) == 4
    poll(node, lambda: not any(node.is_awaited(key, now) for key in keys[4:]))
    pids = [each.process.pid for each in node._running.values()]
    node.end_unused(now + 1000.0, ())
    assert not node._running
    assert not any(map(is_alive, pids))


def test_one_template_after_another_that_hangs_holds_up_no_agent(
    node: WorkerTemplates, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "def run(items): return items"
    (tmp_path / "score.py").write_text(script)
    keys = [key_of(tmp_path, NUMBER=number) for number in "12"]
    for key in keys:
        wait_for_template(node, key)
        os.kill(node._running[key].process.pid, signal.SIGSTOP)
    monkeypatch.setattr(template_process, "_ANSWER_S", 0.2)
    for key in keys:
        harness = start(script, fork=lambda _, request, key=key: node.fork(key, request)).ready()
        assert not harness.worker.is_forked
    assert list(node._running) == keys[1:], "the second one was not asked so soon after the first"


def test_nothing_is_kept_of_a_secret_after_its_job(node: WorkerTemplates, tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text("def run(items): return items")
    key, now = replace(key_of(tmp_path, PASSWORD="of a job"), job_id="job_1"), time.monotonic()
    assert "of a job" not in repr(key)
    assert node.is_awaited(key, now)
    node.end_unused(now + 100.0, {"job_1"})
    assert not node.is_awaited(key, now)
    assert "of a job" not in repr(node._given_up)
    node.end_unused(now + 100.0, ())
    assert not node._given_up


def test_a_template_whose_environment_runs_code_for_a_site_is_not_forked(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "score.py").write_text("def run(items): return items")
    venv.create(tmp_path / "own", symlinks=True)
    (packages,) = (tmp_path / "own").glob("lib/python3*/site-packages")
    (packages / "ours.pth").write_text(os.path.dirname(os.path.dirname(parallelrun_worker.__file__)) + "\n")
    (packages / "distutils-precedence.pth").write_text("import os\n")
    key = replace(key_of(code), python=str(tmp_path / "own" / "bin" / "python"))
    for expected in ("", "its environment runs settings.pth when Python starts"):
        with as_parent():
            template = TemplateProcess.start(key, Orphans().is_worker)
            try:
                assert report_of(template) == expected
            finally:
                template.close()
        (packages / "settings.pth").write_text("import os; os.environ.setdefault('MODEL', 'none')\n")


def test_workers_wait_for_no_template_that_takes_too_long(node: WorkerTemplates, tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text("def run(items): return items")
    key, now = key_of(tmp_path), time.monotonic()
    assert node.is_awaited(key, now)
    node.end_unused(now + 100.0, ())
    assert not node.is_awaited(key, now + 100.0)
    assert not node._running
