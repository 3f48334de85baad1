"""Words of users do nothing to who reads them: not in reports, CSV files, logs and answers, nor on a terminal."""

from __future__ import annotations

import csv
import os
import pty
import subprocess
import sys

import pytest

from parallelrun_core.layout import Logs
from parallelrun_core.untrusted.sanitize import csv_cell, in_one_line, indented, visible
from tests.cluster import Cluster
from tests.security.attacks.words import ATTACKS, RAISES, trouble_in
from tests.security.cluster_target import ClusterTarget

ESC = "\x1b"


def test_what_cannot_be_seen_is_escaped_and_the_rest_stays() -> None:
    assert visible("a\x1b[31m\r\n\tb\x9b\x7f\u202e\u2066\u2028\udc80") == (
        "a\\x1b[31m\\r\n\tb\\x9b\\x7f\\u202e\\u2066\\u2028\\udc80"
    )
    assert visible("naïve 漢字 é 🙂 \\") == "naïve 漢字 é 🙂 \\"
    assert visible("a\nb\tc", lines=False) == "a\\nb\\tc"
    assert in_one_line(" a \n b\x1b\u2028c ") == "a b\\x1b c"
    assert indented("a\r\nb\nc") == "a\n    b\n    c"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1"])  # noqa: RUF001
def test_a_text_that_begins_like_a_formula_gets_a_quote_before_it(text: str) -> None:
    assert next(csv.reader([csv_cell(text)])) == [f"'{text.strip()}"]


def test_other_texts_are_the_same_cells_as_ever() -> None:
    assert csv_cell('say "a, b"\n twice = x') == '"say ""a, b"" twice = x"'


@pytest.mark.integration
def test_words_of_users_do_nothing_to_who_reads_them() -> None:
    check_words()


def check_words(without: str = "") -> None:
    """Play the attack, look at all files of the job and at the logs of the services, and read it on a terminal."""
    made = Cluster(api=True, without=without)
    services = ["api", "master", "concatenator", *made.nodes]
    made.environments = {name: {"PARALLELRUN_LOG_FORMAT": "text"} for name in services}
    with made as cluster:
        target = ClusterTarget(cluster)
        assert ATTACKS[0].play(target) == ""
        folder = cluster.folder(target.job_id)
        for path in (Logs(folder.logs).job_report, Logs(folder.logs).sys / "error", Logs(folder.logs).sys):
            for file in (each for each in path.rglob("*") if each.is_file()):
                assert trouble_in(file.name, file.read_text()) == ""
        for name in services:
            assert trouble_in(name, cluster.log(name)) == ""
        assert "red.txt" in (folder.logs / "job_result.txt").read_text()
        for arguments in (["show"], ["mini-batches"], ["stream"], ["logs", "job_result.txt"], ["show", "-o", "yaml"]):
            shown = on_terminal(cluster, arguments[0], target.job_id, *arguments[1:])
            assert "calc" in shown
            assert trouble_in(" ".join(arguments), shown.replace("\r\n", "\n").replace(f"{ESC}[31m{ESC}[1m", "")
                              .replace(f"{ESC}[0m", "")) == ""  # fmt: skip


def on_terminal(cluster: Cluster, command: str, job_id: str, *arguments: str) -> str:
    """What `parallelrun job …` writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "parallelrun", "job", command, job_id, *arguments],
        env={**os.environ, "PARALLELRUN_URL": cluster.api_url, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                shown += chunk
        except OSError:
            pass  # the end of a terminal
        finally:
            os.close(ours)
        process.wait(30)
    return shown.decode()


@pytest.mark.integration
def test_what_a_script_prints_is_escaped_on_a_terminal_and_left_in_a_pipe() -> None:
    with Cluster(api=True) as cluster:
        target = ClusterTarget(cluster)
        target.rows_of("def run(mini_batch):\n    print('\\x1b[31mred\\tand\\u202eback')\n    return ['row']\n")
        log = f"user/stdout/{cluster.nodes[0]}/process000.stdout.txt"
        assert on_terminal(cluster, "logs", target.job_id, log) == "\\x1b[31mred    and\\u202eback\r\n"
        piped = subprocess.run(
            [sys.executable, "-m", "parallelrun", "job", "logs", target.job_id, log],
            env={**os.environ, "PARALLELRUN_URL": cluster.api_url},
            capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        assert piped.stdout.decode() == "\x1b[31mred\tand\u202eback\n"


@pytest.mark.integration
def test_a_report_with_such_words_is_read_again_by_the_next_leader() -> None:
    """Its rows are neither doubled nor lost, and its sums go on."""
    with Cluster() as cluster:
        script = RAISES.replace("raise Formula(WORDS)", "import time; time.sleep(0.05); raise Formula(WORDS)", 1)
        job_id = cluster.submit(script, inputs=cluster.files(60), mini_batch_size=1, run_max_try=1)
        report = Logs(cluster.folder(job_id).logs).job_report / "processed_mini-batches.csv"
        cluster.until(lambda: report.exists() and report.read_text().count("RUN_EXCEPTION") > 10, "some have failed")
        for leader in cluster.leaders():
            leader.kill()
        cluster.result(job_id)
        with report.open(newline="") as file:
            rows = [*csv.DictReader(file)]
        failed = [row["Mini-batch Id"] for row in rows if row["Status"] == "RUN_EXCEPTION"]
        assert sorted(map(int, failed)) == list(range(60))
        with (report.parent / "process_summary.csv").open(newline="") as file:
            assert sum(int(row["RUN_EXCEPTION"]) for row in csv.DictReader(file)) == 60
