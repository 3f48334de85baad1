"""What is sent to Slurm for a node, and what its answers are taken for. A real Slurm: tests/engines."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from parallelrun_core.computes.kinds.slurm import SlurmCompute, walltime_s
from parallelrun_core.computes.launch import Launch
from parallelrun_provisioner.engines.interface import EngineEnvironment, EngineError, LaunchRefused, NodeStanding
from parallelrun_provisioner.engines.slurm import SlurmEngine
from parallelrun_provisioner.engines.slurm.listing import jobs_in, nodes_of
from parallelrun_provisioner.engines.slurm.words import may_pass, wait_in_words

ID = "cpu-0123456789ab"
MARK = "parallelrun:c1:cpu"
FAKE = """#!/bin/sh
echo "$0 $*" >>"$HOME/calls"; env >>"$HOME/seen"; cat >>"$HOME/stdin"
[ ! -e "$HOME/${0##*/}.error" ] || { cat "$HOME/${0##*/}.error" >&2; exit 1; }
cat "$HOME/${0##*/}.answer" 2>/dev/null || true
"""


def compute(**fields: object) -> SlurmCompute:
    return SlurmCompute.model_validate({"type": "slurm", "name": "cpu", **fields})


class Slurm:
    """Commands that write down how they were called, and answer what they are told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        for name in ("sbatch", "squeue", "scancel"):
            (folder / name).write_text(FAKE)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setenv("HOME", str(folder))

    def engine(self, *, secret: str = "", **fields: object) -> SlurmEngine:
        around = EngineEnvironment(
            cluster="c1", root=self.folder / "root", redis_url="rediss://login:6380/0", agent_secret=secret
        )
        return SlurmEngine(compute(**fields), around)

    def answer(self, command: str, text: str) -> None:
        (self.folder / f"{command}.answer").write_text(text)

    def fail(self, command: str, text: str) -> None:
        (self.folder / f"{command}.error").write_text(text)

    def calls(self, command: str) -> list[list[str]]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [shlex.split(line)[1:] for line in lines if line.split()[0].endswith(command)]

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    return Slurm(tmp_path, monkeypatch)


def line(number: int, state: str, *, end: str = "N/A", reason: str = "None", name: str = ID, mark: str = MARK) -> str:
    return f"{number}|{state}|{end}|{reason}|{name}|{mark}\n"


class TestDefinition:
    @pytest.mark.parametrize(
        "text, seconds",
        [("90", 5400), ("30:30", 1830), ("12:00:00", 43_200), ("1-6", 108_000), ("2-00:30", 174_600),
         ("1-02:03:04", 93_784)],
    )  # fmt: skip
    def test_reads_times_as_slurm_does(self, text: str, seconds: int) -> None:
        assert walltime_s(text) == seconds

    @pytest.mark.parametrize(
        "fields, words",
        [
            ({"walltime": "4"}, "at least 5 minutes"),
            ({"walltime": "soon"}, "HH:MM:SS"),
            ({"options": {"wrap": "id"}}, "is not one of"),
            ({"options": {"output": "/etc/passwd"}}, "is not one of"),
            ({"options": {"exclude": "n1\n#SBATCH --uid=0"}}, "no file"),
            ({"options": {"exclude": "./nodes"}}, "no file"),
            ({"options": {"nodelist": "/etc/passwd"}}, "no file"),
            ({"options": {"contiguous": False}}, "True"),
            ({"python": "/bin/sh"}, "pattern"),
            ({"python": "python3"}, "pattern"),
            ({"partition": "main --uid=0"}, "pattern"),
            ({"tier": "low_priority"}, "low_priority_partition"),
            ({"gpu_type": "a100"}, "gpus"),
            ({"redis_url": "rediss://agent:secret@login/0"}, "pattern"),
            ({"redis_url": "rediss://login/0?password=secret"}, "pattern"),
            ({"redis_url": "rediss://login/0?ssl_cert_reqs=none"}, "pattern"),
            (
                {"redis_url": "rediss://login/0?ssl_ca_certs=/ca&ssl_certfile=/c&ssl_keyfile=/k&ssl_cert_reqs=none"},
                "pattern",
            ),
            ({"redis_url": "rediss://login/0?ssl_certfile=/c&ssl_keyfile=/k"}, "pattern"),
            ({"redis_url": "unix:///run/redis.sock?db=0&password=secret"}, "pattern"),
        ],
    )
    def test_refuses_what_would_not_work(self, fields: dict[str, object], words: str) -> None:
        with pytest.raises(ValidationError, match=words):
            compute(**fields)


class TestSending:
    def test_asks_for_what_the_compute_says(self, slurm: Slurm) -> None:
        engine = slurm.engine(
            tier="low_priority", partition="main", low_priority_partition="spot", account="lab", qos="short",
            walltime="1:00:00", cpus=1.5, memory_bytes=(1 << 30) + 1, gpus=2, gpu_type="a100", constraint="ib&ssd",
            options={"exclude": "n[1-3]", "contiguous": True},
        )  # fmt: skip
        engine.launch(Launch(id=ID, compute="cpu"))
        [sent] = slurm.calls("sbatch")
        expected = {
            "--parsable", "--no-requeue", f"--job-name={ID}", f"--comment={MARK}", "--partition=spot", "--account=lab",
            "--qos=short", "--time=1:00:00", "--cpus-per-task=2", "--mem=1025M", "--gres=gpu:a100:2",
            "--constraint=ib&ssd", "--exclude=n[1-3]", "--contiguous", "--nodes=1", "--dependency=singleton",
            "--signal=B:TERM@120",
        }  # fmt: skip
        assert expected <= set(sent)

    def test_the_plan_is_what_is_sent(self, slurm: Slurm) -> None:
        engine, launch = slurm.engine(walltime="1:00:00"), Launch(id=ID, compute="cpu", arguments=("--node", ID))
        plan = engine.plan(launch)
        assert not (slurm.folder / "calls").exists()
        engine.launch(launch)
        [sent] = slurm.calls("sbatch")
        assert plan == f"{shlex.join(['sbatch', *sent])} <<'END'\n{slurm.read('stdin')}END\n"

    def test_secrets_are_in_one_file_for_the_user_alone(self, slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("PARALLELRUN_REDIS_SECRET", "AWS_SECRET_ACCESS_KEY", "SLURM_JWT", "SBATCH_PARTITION"):
            monkeypatch.setenv(name, "hush")
        slurm.engine(secret="hush").launch(Launch(id=ID, compute="cpu"))
        for text in (slurm.read("calls"), slurm.read("seen"), slurm.read("stdin")):
            assert "hush" not in text
        file = slurm.folder / "root/nodes/cpu/agent.secret"
        assert f"PARALLELRUN_REDIS_SECRET_FILE={file}" in slurm.read("stdin")
        assert file.read_text() == "hush\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    @given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
    def test_no_word_of_the_script_is_more_than_a_word(self, word: str) -> None:
        around = EngineEnvironment(cluster="c1", root=Path("/r"), redis_url="redis://h/0")
        launch = Launch(id=ID, compute="cpu", arguments=(word,), environment={"PARALLELRUN_A": word})
        script = (
            SlurmEngine(compute().model_copy(update={"python": "/bin/printf"}), around)
            .plan(launch)
            .partition("<<'END'\n")[2][:-4]
        )
        shown = shlex.split(script.partition("exec ")[2])
        assert shown[0] == "/bin/printf"
        assert shown[-1] == word

    def test_a_word_reaches_the_agent_as_it_is(self, tmp_path: Path) -> None:
        hostile = "a b'\"$(id)`id`;\n#END"
        (tmp_path / "python").write_text('#!/bin/sh\nshift 4; printf "%s" "$1$PARALLELRUN_A"\n')
        (tmp_path / "python").chmod(0o755)
        around = EngineEnvironment(cluster="c1", root=tmp_path, redis_url="redis://h/0")
        launch = Launch(id=ID, compute="cpu", arguments=(hostile,), environment={"PARALLELRUN_A": hostile})
        script = (
            SlurmEngine(compute(python=str(tmp_path / "python")), around).plan(launch).partition("<<'END'\n")[2][:-4]
        )
        done = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True)
        assert done.stdout == hostile * 2

    def test_asking_twice_launches_once(self, slurm: Slurm) -> None:
        slurm.answer("squeue", line(7, "PENDING"))
        slurm.engine().launch(Launch(id=ID, compute="cpu"))
        assert slurm.calls("sbatch") == []

    def test_a_refusal_is_in_slurms_words(self, slurm: Slurm) -> None:
        slurm.fail(
            "sbatch",
            "sbatch: error: invalid partition specified: x\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
        )
        with pytest.raises(LaunchRefused, match=r"^invalid partition specified: x; Batch job submission failed: Inv"):
            slurm.engine().launch(Launch(id=ID, compute="cpu"))

    @pytest.mark.parametrize(
        "error",
        [
            "Unable to contact slurm controller (connect failure)",
            "Batch job submission failed: Socket timed out on send/recv operation",
            "Batch job submission failed: Resource temporarily unavailable",
            "Batch job submission failed: Zero Bytes were transmitted or received",
        ],
    )
    def test_what_may_pass_is_no_refusal(self, slurm: Slurm, error: str) -> None:
        slurm.fail("sbatch", f"sbatch: error: {error}\n")
        with pytest.raises(EngineError) as raised:
            slurm.engine().launch(Launch(id=ID, compute="cpu"))
        assert not isinstance(raised.value, LaunchRefused)

    def test_says_that_there_is_no_slurm(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        around = EngineEnvironment(cluster="c1", root=tmp_path, redis_url="redis://h/0")
        with pytest.raises(EngineError, match=r"squeue can't be run: .* PATH"):
            SlurmEngine(compute(), around).nodes()


class TestListing:
    def test_only_our_jobs_are_nodes(self) -> None:
        text = (
            line(1, "RUNNING", end="1700000000")
            + line(2, "RUNNING", mark="parallelrun:c2:cpu")
            + line(3, "RUNNING", name="cpu-somebody")
            + line(4, "RUNNING", name="gpu-0123456789ab")
            + "5|RUNNING|N/A|None|x|a comment\nwith lines\n"
        )
        [job] = jobs_in(text, mark=MARK, compute="cpu")
        [node] = nodes_of([job])
        assert (node.launch_id, node.standing, node.ends_at) == (ID, NodeStanding.RUNNING, 1.7e9)

    @pytest.mark.parametrize(
        "state, standing, was_preempted",
        [
            ("PENDING", NodeStanding.PENDING, False),
            ("CONFIGURING", NodeStanding.PENDING, False),
            ("RUNNING", NodeStanding.RUNNING, False),
            ("COMPLETING", NodeStanding.RUNNING, False),
            ("A_NEW_ONE", NodeStanding.RUNNING, False),
            ("COMPLETED", NodeStanding.ENDED, False),
            ("FAILED", NodeStanding.ENDED, False),
            ("TIMEOUT", NodeStanding.ENDED, False),
            ("OUT_OF_MEMORY", NodeStanding.ENDED, False),
            ("PREEMPTED", NodeStanding.ENDED, True),
            ("NODE_FAIL", NodeStanding.ENDED, True),
            ("CANCELLED", NodeStanding.ENDED, True),
        ],
    )
    def test_states(self, state: str, standing: NodeStanding, was_preempted: bool) -> None:
        [node] = nodes_of(jobs_in(line(1, state), mark=MARK, compute="cpu"))
        assert (node.standing, node.was_preempted) == (standing, was_preempted)

    def test_a_second_job_of_one_name_counts_when_the_first_has_ended(self) -> None:
        waiting = line(9, "PENDING", reason="Dependency")
        [node] = nodes_of(jobs_in(waiting + line(8, "RUNNING"), mark=MARK, compute="cpu"))
        assert node.standing is NodeStanding.RUNNING
        [node] = nodes_of(jobs_in(waiting + line(8, "CANCELLED"), mark=MARK, compute="cpu"))
        assert node.standing is NodeStanding.PENDING

    @pytest.mark.parametrize(
        "reason, words",
        [
            ("Resources", "waits until enough of the cluster is free (Slurm: Resources)"),
            ("QOSMaxJobsPerUserLimit", "a limit of its account or QOS is reached"),
            ("AssocGrpCpuLimit", "a limit of its account or QOS is reached"),
            ("PartitionTimeLimit", "will not start"),
            ("ReqNodeNotAvail,_UnavailableNodes:n1", "down, drained or reserved"),
            ("SomethingNew", "waits (Slurm: SomethingNew)"),
        ],
    )
    def test_says_why_a_job_waits(self, reason: str, words: str) -> None:
        assert words in wait_in_words(reason)

    def test_only_old_logs_of_nodes_that_are_gone_are_removed(self, slurm: Slurm) -> None:
        slurm.answer("squeue", line(1, "RUNNING"))
        folder = slurm.folder / "root/nodes/cpu"
        folder.mkdir(parents=True)
        logs = [folder / f"{name}.log" for name in (ID, "cpu-gone", "cpu-new")]
        for log in logs:
            log.touch()
        for log in logs[:2]:
            os.utime(log, (0, 0))
        (folder / "cpu-vanished.log").symlink_to("nowhere")  # what a listed file is that somebody has removed since
        slurm.engine().launch(Launch(id="cpu-ba9876543210", compute="cpu"))
        assert [log.exists() for log in logs] == [True, False, True]

    @pytest.mark.parametrize("state", ["FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL"])
    def test_says_why_an_agent_has_failed(self, slurm: Slurm, state: str) -> None:
        engine = slurm.engine()
        engine.launch(Launch(id=ID, compute="cpu"))
        (slurm.folder / f"root/nodes/cpu/{ID}.log").write_text("No module named\nparallelrun_agent\n")
        slurm.answer("squeue", line(3, state, reason="NonZeroExitCode"))
        [node] = engine.nodes()
        assert node.words.endswith("its log: No module named parallelrun_agent")


class TestEnding:
    def test_the_agent_is_told_first_and_what_waits_is_cancelled(self, slurm: Slurm) -> None:
        other = "cpu-ba9876543210"
        slurm.answer("squeue", line(1, "RUNNING") + line(2, "PENDING", name=other) + line(3, "COMPLETED"))
        engine = slurm.engine()
        engine.terminate([ID, other])
        assert slurm.calls("scancel") == [["--quiet", "--batch", "--signal=TERM", "1"], ["--quiet", "2"]]

    def test_what_does_not_end_is_cancelled(self, slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
        slurm.answer("squeue", line(1, "RUNNING"))
        engine = slurm.engine()
        engine.terminate([ID])
        monkeypatch.setattr("parallelrun_provisioner.engines.slurm.engine._PATIENCE_S", 0.0)
        engine.terminate([ID])
        assert slurm.calls("scancel")[-1] == ["--quiet", "1"]

    def test_nothing_to_end_calls_nobody(self, slurm: Slurm) -> None:
        slurm.engine().terminate([])
        assert not (slurm.folder / "calls").exists()


def test_a_refusal_of_a_limit_is_none_that_passes() -> None:
    assert not may_pass("Batch job submission failed: Job violates accounting/QOS policy (job submit limit)")
