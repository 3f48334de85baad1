"""Jobs with a shell command: how they end, what they find, and what they leave behind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from parallelrun import Client, Conflict, InvalidRequest, JobFailed
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.metrics import read_metrics
from parallelrun_core.folder.records import JobResult
from parallelrun_core.layout import Logs
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

_NEVER_S = 1000


def failure_of(result: JobResult) -> JobFailure:
    assert result.state is JobState.FAILED
    assert result.failure is not None
    return result.failure


def outcome_of(cluster: Cluster, job: str) -> Outcome:
    (outcome,) = read_decisions(cluster.folder(job).path)
    return outcome


def printed(cluster: Cluster, job: str, process: str = "process000") -> list[str]:
    return Logs(cluster.folder(job).logs).stdout("node000", process).read_text().splitlines()


def is_running(pid: str) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def end(pids: Iterable[str]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def exit_code_decides(cluster: Cluster) -> None:
    """One command succeeds, and the same with another exit code fails, with its last words and no secret in them."""
    command = "echo printed; echo bad $PASSWORD >&2; exit ${{inputs.code}}"
    variables = {"PASSWORD": "very secret words"}
    good, bad = (
        cluster.submit_command(command, inputs={"code": code}, environment_variables=variables) for code in (0, 3)
    )
    result = cluster.result(good)
    assert result.state is JobState.COMPLETED
    assert (result.progress.done, result.progress.items_done, result.progress.items_failed) == (1, 1, 0)
    assert "exit code 0" in (cluster.folder(good).logs / "job_result.txt").read_text()
    assert printed(cluster, good) == ["printed"]
    failure = failure_of(cluster.result(bad))
    assert failure.code == "COMMAND_FAILED"
    assert failure.first_cause == "EXITED: The command ended with exit code 3: bad *** (on stdout: printed)"
    assert failure.traceback.strip() == "printed\nbad ***"
    assert outcome_of(cluster, bad).tries == 1


def test_the_exit_code_of_a_command_decides_how_its_job_ends() -> None:
    with Cluster() as cluster:
        exit_code_decides(cluster)


def test_without_the_check_of_what_failed_a_failed_command_completes() -> None:
    with Cluster(without="command.decides") as cluster, pytest.raises(AssertionError):
        exit_code_decides(cluster)


LEAVES_ALL_KINDS = """
note() { echo $1 >> $PIDS; }
sleep 1000 & note $!
setsid sh -c 'echo $$ >> $PIDS; sleep 1000' &
(setsid sh -c 'echo $$ >> $PIDS; exec sleep 1000' &)
note $$
until [ $(wc -l < $PIDS) = 4 ]; do sleep 0.01; done
"""


def ended_with_all(cluster: Cluster, rest: str, **settings: Any) -> tuple[JobResult, list[str]]:
    """How a command ends that leaves processes of all kinds behind, and which of them are still there then."""
    pids = cluster.home / "pids"
    variables = {"PIDS": str(pids)}
    job = cluster.submit_command(LEAVES_ALL_KINDS + rest, environment_variables=variables, **settings)
    result = cluster.result(job)
    noted = pids.read_text().split()
    assert len(noted) == 4
    left = [pid for pid in noted if is_running(pid)]
    end(left)
    return result, left


def test_a_command_that_takes_too_long_leaves_no_process_behind() -> None:
    with Cluster() as cluster:
        result, left = ended_with_all(cluster, "sleep 1000", run_invocation_timeout=2)
        failure = failure_of(result)
        assert failure.first_cause == "RUN_TIMEOUT: The command took longer than its timeout (2 s)."
        assert left == []


def test_without_the_end_of_orphans_a_command_leaves_daemons_behind() -> None:
    with Cluster(without="worker.end_orphans") as cluster:
        _, left = ended_with_all(cluster, "sleep 1000", run_invocation_timeout=2)
        assert left


def test_a_command_that_ends_leaves_no_process_behind() -> None:
    with Cluster() as cluster:
        result, left = ended_with_all(cluster, "exit 0")
        assert result.state is JobState.COMPLETED
        assert left == []


def test_what_a_command_has_left_running_changes_no_output_any_more() -> None:
    command = """
    sh -c 'echo 0 > ${{outputs.log}}; until [ -e ${{inputs.never}} ]; do echo 1 >> ${{outputs.log}}; done' &
    until [ -s ${{outputs.log}} ]; do sleep 0.01; done
    """
    with Cluster() as cluster:
        given = {"never": {"value": str(cluster.home / "never")}}
        job = cluster.submit_command(command, inputs=given, outputs={"log": {"type": "uri_file"}})
        assert cluster.result(job).state is JobState.COMPLETED
        log = cluster.folder(job).outputs / "log"
        size = log.stat().st_size
        other = cluster.submit_command("sleep 0.2")
        assert cluster.result(other).state is JobState.COMPLETED
        assert log.stat().st_size == size


@pytest.mark.parametrize(
    "command, cause",
    [
        ("kill -9 $$", "SIGNAL: The command was ended by signal 9 (SIGKILL), perhaps by the kernel because memory ran"),
        ("sh -c 'kill -11 $$'; exit $?", "with exit code 139 (a program in it was ended by signal 11, SIGSEGV)"),
        ("no-such-program", "EXITED: The command ended with exit code 127 (a program in it was not found): "),
        ("./entry.py", "EXITED: The command ended with exit code 126 (a file in it can't be executed): "),
        ("printf '10%%\\r20%%\\n' >&2; exit 1", "EXITED: The command ended with exit code 1: 20%"),
        ("echo only here; exit 2", "EXITED: The command ended with exit code 2: only here"),
        (
            "echo cause; echo warned >&2; exit 2",
            "The command ended with exit code 2: warned (on stdout: cause)",
        ),
        ("if true; then", "exit code"),
        ("python -c 'import no_such_module'", "No module named 'no_such_module'"),
    ],
)
def test_why_a_command_failed_is_told(command: str, cause: str, cluster: Cluster) -> None:
    failure = failure_of(cluster.result(cluster.submit_command(command)))
    assert cause in failure.first_cause
    assert ("environment" in failure.hint) == ("module" in cause)


@pytest.fixture(scope="module")
def cluster() -> Iterable[Cluster]:
    with Cluster() as cluster:
        yield cluster


def test_a_command_runs_in_a_copy_of_its_code_that_is_its_own(cluster: Cluster) -> None:
    """Also the next try finds the code as it was submitted."""
    command = "test ! -e made && ls && cat entry.py && echo changed > entry.py && touch made && exit 1"
    job = cluster.submit_command(command, script="as submitted\n", run_max_try=2)
    failure_of(cluster.result(job))
    assert outcome_of(cluster, job).tries == 2
    assert printed(cluster, job) == ["entry.py", "logs", "outputs", "as submitted"] * 2


def test_a_command_finds_its_inputs_outputs_and_variables(cluster: Cluster) -> None:
    data = cluster.home / "my data.txt"
    data.write_text("content")
    command = """
    cat ${{inputs.data}}; echo
    echo $AZURE_ML_INPUT_limit $MINE $AZUREML_RUN_ID $[[--${{inputs.given}}]] $[[${{inputs.no}}]]
    cat "$AZURE_ML_INPUT_data" > ${{outputs.file}} && cp ${{outputs.file}} ${{outputs.folder}}/copy
    test "$AZURE_ML_OUTPUT_folder" = ${{outputs.folder}} && echo kept > outputs/model && echo log > logs/own.log
    [[ $0 == *sh ]] && python -c 'import sys; print(sys.executable)'
    """
    job = cluster.submit_command(
        command,
        inputs={"data": {"path": str(data), "type": "uri_file"}, "limit": 5, "given": {"value": "x"}},
        outputs={"file": {"type": "uri_file", "path": str(cluster.home / "new/folder/file.txt")}, "folder": {}},
        environment_variables={"MINE": "mine"},
    )
    assert cluster.result(job).state is JobState.COMPLETED
    assert printed(cluster, job)[:2] == ["content", f"5 mine {job} --x"]
    outputs = cluster.folder(job).outputs
    assert (cluster.home / "new/folder/file.txt").read_text() == "content"
    assert (outputs / "folder/copy").read_text() == "content"
    assert (outputs / "model").read_text() == "kept\n"
    assert (Logs(cluster.folder(job).logs).script_files("node000") / "process000/own.log").read_text() == "log\n"


def test_a_command_that_is_canceled_ends_at_once(cluster: Cluster) -> None:
    pid = cluster.home / "pid"
    job = cluster.submit_command(f"echo $$ > {pid}.new; mv {pid}.new {pid}; sleep {_NEVER_S}; true")
    cluster.until(pid.exists, "the command runs")
    cluster.registry.move(job, JobState.CANCELED)
    cluster.until(lambda: not is_running(pid.read_text().strip()), "the command is gone")
    assert cluster.result(job).state is JobState.CANCELED


def test_commands_run_side_by_side_wherever_a_slot_is_free() -> None:
    """Each waits for the other, and a node has room for only one of them."""
    with Cluster(nodes=2, slots=1) as cluster:
        here = cluster.home / "here"
        here.mkdir()
        command = f"touch {here}/$AZUREML_RUN_ID; until [ $(ls {here} | wc -l) = 2 ]; do sleep 0.05; done"
        jobs = [cluster.submit_command(command) for _ in range(2)]
        assert [cluster.result(job).state for job in jobs] == [JobState.COMPLETED] * 2
        assert {outcome_of(cluster, job).node for job in jobs} == set(cluster.nodes)


def test_a_command_that_writes_nothing_to_an_output_is_told_which(cluster: Cluster) -> None:
    place = cluster.home / "nothing-here"
    outputs = {"file": {"type": "uri_file"}, "folder": {"type": "uri_folder"}, "full": {"type": "uri_folder"}}
    outputs["placed"] = {"type": "uri_folder", "path": str(place)}
    job = cluster.submit_command("touch ${{outputs.full}}/there", outputs=outputs)
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED
    silent = [warning for warning in result.warnings if "has written nothing" in warning]
    assert silent == [
        "The command has written nothing to its output 'file'.",
        "The command has written nothing to its output 'folder'.",
        f"The command has written nothing to its output 'placed' ({place}).",
    ]
    del outputs["placed"]
    both = cluster.submit_command("touch ${{outputs.file}} ${{outputs.folder}}/x ${{outputs.full}}/x", outputs=outputs)
    assert cluster.result(both).warnings == []


def test_a_command_whose_node_dies_runs_on_another_one() -> None:
    with Cluster(nodes=2, slots=1, lease_s=2) as cluster:
        pids = cluster.home / "pids"
        command = f"cat {pids} > new; echo $$ >> new; cp new {pids}.$$; mv {pids}.$$ {pids}"
        job = cluster.submit_command(f"{command}; [ $(wc -l < {pids}) = 2 ] || exec sleep {_NEVER_S}")
        cluster.until(pids.exists, "the command runs")
        above = {process.pid for process in psutil.Process(int(pids.read_text())).parents()}
        cluster.kill(next(name for name in cluster.nodes if cluster.processes[name].pid in above))
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        assert result.progress.lost == 1
        first, _ = pids.read_text().split()
        cluster.until(lambda: not is_running(first), "the first one has died with its node")


def test_a_command_is_submitted_with_code_or_without_and_retried_over_the_api(tmp_path: Path) -> None:
    (tmp_path / "tool.sh").write_text("cat tool.sh | wc -l; test -e $1")
    (tmp_path / "tool.sh").chmod(0o755)
    environment = {"type": "command", "environment": "azureml:any@latest"}
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        switch = cluster.home / "switch"
        job = client.jobs.create({**environment, "command": "sh ./tool.sh " + str(switch), "code": tmp_path})
        with pytest.raises(JobFailed, match="The command failed"):
            client.jobs.wait(job.id)
        with pytest.raises(Conflict, match="fail again at once"):
            client.jobs.resume(job.id)
        switch.touch()
        client.jobs.retry(job.id)
        assert client.jobs.wait(job.id).state == "completed"
        bare = client.jobs.create({**environment, "command": "ls"})
        ended = client.jobs.wait(bare.id)
        assert ended.spec["command"] == "ls"
        assert not ended.spec.keys() & {"entry_script", "append_row_file_name", "instance_count"}
        assert printed(cluster, bare.id) == ["logs", "outputs"]
        with pytest.raises(InvalidRequest, match="means nothing with a command"):
            client.jobs.create(JobSpec.parse({"command": "ls"}).model_copy(update={"resume_from": job.id}))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users")
def test_a_command_runs_as_the_user_of_its_job() -> None:
    command = """
    [ $(id -u) -ge 20000 ] && echo changed >> entry.py && touch $HOME/a $TMPDIR/b && [ ! -w {code} ] &&
    echo 1 > ${{{{outputs.folder}}}}/1 && echo 2 > ${{{{outputs.file}}}} && echo 3 > outputs/3 && echo 4 > logs/4 &&
    (setsid sleep 1000 & echo $! > outputs/pid)
    """
    with Cluster(worker_uids="20000-59999") as cluster:
        job = cluster.submit_command(
            command.format(code=cluster.root / "code"), outputs={"folder": {}, "file": {"type": "uri_file"}}
        )
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED, result.failure
        outputs = cluster.folder(job).outputs
        assert sorted(path.name for path in outputs.iterdir()) == ["3", "file", "folder", "pid"]
        assert not is_running((outputs / "pid").read_text().strip())


USES_WHAT_SCRIPTS_USE = """
import json, sitecustomize, sys, six
from azureml.core import Run
from azureml_user.parallel_run import EntryScript
from parallelrun import log_metric
run = Run.get_context()
run.log("score", 5)
log_metric("other", 6)
print(json.dumps([run.id, EntryScript().agent_name, sys.path[0] != sitecustomize.__file__, six.__name__]))
"""


def test_the_programs_of_a_command_can_import_what_entry_scripts_can(cluster: Cluster) -> None:
    (modules := cluster.home / "modules").mkdir()
    (modules / "sitecustomize.py").write_text("")
    (modules / "six.py").write_text("__name__ = 'of the user'")
    job = cluster.submit_command(
        "python entry.py", script=USES_WHAT_SCRIPTS_USE, environment_variables={"PYTHONPATH": str(modules)}
    )
    assert cluster.result(job).state is JobState.COMPLETED
    assert json.loads(printed(cluster, job)[0]) == [job, "process000", True, "of the user"]
    metrics = read_metrics(cluster.folder(job).logs).metrics
    assert metrics.keys() == {"score", "other"}
