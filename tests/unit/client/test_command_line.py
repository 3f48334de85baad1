"""The command line's own part: usage errors, exit codes, forms of output. No server is involved."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.main import get_command

from parallelrun.cli import main
from parallelrun.cli.app import app
from parallelrun.cli.errors import exit_code_of, lines_about
from parallelrun.cli.exit_codes import ExitCode, of_state
from parallelrun.cli.output import OutputFormat, show_change, show_list, show_one
from parallelrun.errors import (
    ClusterFailed,
    ConnectionFailed,
    InvalidInput,
    JobCanceled,
    JobFailed,
    ParallelRunError,
    Problem,
    TimedOut,
    error_of,
)
from parallelrun.models import Job, Node


@pytest.mark.parametrize(
    "line",
    ["", "nonsense", "run", "run job.yml -o out", "run job.yml --nodes 0", "job", "job show", "job show a b",
     "job create --no-such-option", "node list -o xml"],
)  # fmt: skip
def test_a_wrong_command_line_exits_with_1(capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert main(line.split()) == ExitCode.USAGE

    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("Usage: ") == 1
    assert ("error: " in shown.err) == (line not in ("", "job"))
    assert "Traceback" not in shown.err
    assert "Value error" not in shown.err
    assert ("hint: a folder goes to --output" in shown.err) == (line == "run job.yml -o out")


def test_help_and_version_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "Exit codes: 0 completed, 1 usage, 2 invalid spec" in shown
    listed = re.findall(r"^  ([a-z][\w-]+)  +[A-Z]", shown.partition("--help")[2], re.MULTILINE)
    assert sorted(listed) == sorted(get_command(app).commands)  # type: ignore[attr-defined]
    assert main(["-h"]) == 0
    assert shown.endswith(capsys.readouterr().out)
    assert main(["job", "create", "-h"]) == 0


def test_without_a_server_the_error_says_how_to_get_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("PARALLELRUN_URL", raising=False)

    assert main(["job", "list"]) == ExitCode.UNREACHABLE

    assert "parallelrun up" in capsys.readouterr().err


def test_a_wrong_job_file_is_reported_whole_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "job.yml").write_text("entry_script: a.py\ninputs: data\nmini_batch_sise: 3\nrun_max_try: 0\n")

    assert main(["run", str(tmp_path / "job.yml"), "--output", str(tmp_path / "out")]) == ExitCode.INVALID_SPEC

    assert capsys.readouterr().err.splitlines() == [
        "error: invalid input:",
        f"  {tmp_path}/job.yml:4: /run_max_try: must be greater than or equal to 1, not 0",
        f"  {tmp_path}/job.yml:3: /mini_batch_sise: unknown field",
        "    hint: did you mean 'mini_batch_size'?",
    ]
    assert not (tmp_path / "out").exists()


def job(state: str, **fields: Any) -> Job:
    return Job(id="job_1", state=state, **fields)


def test_an_output_that_nothing_can_write_to_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").touch()
    (tmp_path / "e.py").write_text("def run(mini_batch):\n    return mini_batch\n")
    (tmp_path / "job.yml").write_text("entry_script: e.py\ncode: .\ninputs: words.txt\n")
    assert main(["run", "job.yml", "--output", "hdfs://host/key"]) == ExitCode.USAGE
    assert "--output: 'hdfs://host/key' refers to a hdfs: URL" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.py", "job.yml", "words.txt"]


def test_a_url_for_a_download_is_refused_before_a_server_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "download", "job_1", "--path", "s3://bucket/key", "--url", "http://nowhere.invalid"]) == 1
    assert "--path: 's3://bucket/key' refers to Amazon S3" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, code",
    [
        (InvalidInput.at("/code", "wrong"), ExitCode.INVALID_SPEC),
        (InvalidInput.at("--output", "there already"), ExitCode.USAGE),
        (error_of(422, {"errors": [{"pointer": "/code", "message": "wrong"}]}), ExitCode.INVALID_SPEC),
        (error_of(422, {}), ExitCode.USAGE),
        (error_of(404, {}), ExitCode.USAGE),
        (error_of(409, {}), ExitCode.USAGE),
        (error_of(401, {}), ExitCode.USAGE),
        (error_of(503, {}), ExitCode.UNREACHABLE),
        (error_of(429, {"code": "quota_exceeded"}), ExitCode.USAGE),
        (ConnectionFailed(), ExitCode.UNREACHABLE),
        (ClusterFailed(), ExitCode.UNREACHABLE),
        (TimedOut(), ExitCode.TIMEOUT),
        (JobFailed(job("failed")), ExitCode.JOB_FAILED),
        (JobCanceled(job("canceled")), ExitCode.JOB_CANCELED),
        (OSError(13, "Permission denied"), ExitCode.USAGE),
        (ZeroDivisionError(), ExitCode.USAGE),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, code: ExitCode) -> None:
    assert exit_code_of(error) == code


def test_the_end_of_a_job_has_its_exit_code() -> None:
    assert [of_state(state) for state in ("completed", "failed", "canceled")] == [0, 3, 4]


def test_problems_have_a_line_each_and_their_hints() -> None:
    error = ParallelRunError(
        problems=(Problem(pointer="/a", message="bad\x1b[2J", hint="do this"), Problem(pointer="", message="worse"))
    )

    assert lines_about(error)[1:] == ["  /a: bad\\x1b[2J", "    hint: do this", "  worse"]


def test_other_errors_are_one_line_and_no_traceback() -> None:
    assert lines_about(OSError(28, "No space left on device", "/data/x")) == ["error: /data/x: No space left on device"]
    hint = "  hint: give --token, or set PARALLELRUN_TOKEN; the cluster of `parallelrun up` needs neither"
    assert lines_about(error_of(401, {"detail": "No token."}))[-1] == hint
    assert lines_about(error_of(403, {"detail": "It is anna's."})) == ["error: It is anna's."]
    assert "bug" in lines_about(KeyError("x"))[1]


def test_lists_come_as_table_json_yaml_or_names(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [Node(node="node1", state="ready", slots=2), Node(node="n\x1b2", state="lost")]

    def shown(form: OutputFormat) -> str:
        columns = [("NODE", lambda node: node.node), ("STATE", lambda node: node.state)]
        show_list(nodes, form, name=lambda node: node.node, columns=columns)
        return capsys.readouterr().out

    assert shown(OutputFormat.TABLE) == "NODE    STATE\nnode1   ready\nn\\x1b2  lost\n"
    assert shown(OutputFormat.NAME).splitlines()[0] == "node1"
    assert [node["node"] for node in json.loads(shown(OutputFormat.JSON))] == ["node1", "n\x1b2"]
    assert [node["slots"] for node in yaml.safe_load(shown(OutputFormat.YAML))] == [2, 0]


def test_one_thing_comes_in_the_same_forms(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(form: OutputFormat) -> str:
        show_one(job("failed"), form, name="job_1", lines=[("id", "job_1"), ("failure", "a\nb"), ("output", "")])
        return capsys.readouterr().out

    assert shown(OutputFormat.TABLE) == "id:      job_1\nfailure: a\n         b\n"
    assert shown(OutputFormat.NAME) == "job_1\n"
    assert json.loads(shown(OutputFormat.JSON))["state"] == "failed"


SILENT = {
    "down", "compute plan", "redis-acl", "job open", "job stream", "schedule enable", "schedule disable",
    "token revoke", "quota remove", "job replay", "node drain",
}  # fmt: skip
"""What prints no data, an address, or a file for another program. So does what deletes, labels, archives, restores."""


def commands(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All commands with their names."""
    for each, command in group.commands.items():
        yield from commands(command, f"{name}{each} ") if hasattr(command, "commands") else [(name + each, command)]


def test_whatever_prints_data_prints_it_in_the_same_forms() -> None:
    without = {
        name
        for name, command in commands(typer.main.get_command(app))
        if name.split()[-1] not in ("delete", "label", "archive", "restore")
        and not any("-o" in param.opts for param in command.params)
    }
    assert without == SILENT


def test_a_change_is_one_line_or_what_was_changed(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(form: OutputFormat) -> str:
        show_change(job("canceled"), form, name="job_1", text="job_1 canceled")
        return capsys.readouterr().out

    assert (shown(OutputFormat.TABLE), shown(OutputFormat.NAME)) == ("job_1 canceled\n", "job_1\n")
    assert json.loads(shown(OutputFormat.JSON)) == yaml.safe_load(shown(OutputFormat.YAML))


def test_a_tail_without_a_log_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "logs", "job_1", "--tail", "3"]) == ExitCode.USAGE
    assert "--tail needs a log path" in capsys.readouterr().err
