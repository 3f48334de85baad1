"""Jobs whose ends become traces, with whole clusters and a collector: whoever dies, and however long it is away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import parallelrun
from parallelrun import Client
from parallelrun.embedded import local_run
from parallelrun_core.tracing.context import SpanContext
from tests.cluster import Cluster
from tests.otlp import Collector, black_hole

pytestmark = pytest.mark.integration

GIVEN = f"00-{'a' * 32}-{'b' * 16}-01"
SCRIPT = "import os\ndef run(mini_batch):\n    return [os.environ.get('TRACEPARENT', 'none') for _ in mini_batch]\n"


def trace_to(cluster: Cluster, url: str, *services: str, **variables: str) -> None:
    """Let these services know of a collector."""
    for service in services:
        cluster.environments.setdefault(service, {}).update({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **variables})


def rows_of(cluster: Cluster, job: str) -> set[str]:
    output = cluster.folder(job).outputs / "parallel_run_step.txt"
    return set(output.read_text().split())


def test_the_trace_of_a_job_is_sent_whatever_dies(tmp_path: Path) -> None:
    trace_although_all_die(tmp_path, within_s=60)


def trace_although_all_die(tmp_path: Path, *, within_s: float, without: str = "") -> None:
    """The leader is killed when the end is recorded, its master, too, Redis forgets everything, and the collector
    refuses the first time."""
    failpoints = f"finish.after_result=kill:{tmp_path / 'killed'}"
    cluster = Cluster(nodes=1, slots=1, leader_s=1, without=without, failpoints=failpoints)
    with Collector(503, 200) as collector:
        trace_to(cluster, collector.url, "master")
        with cluster:
            job = cluster.submit(SCRIPT, inputs=cluster.files(6), mini_batch_size=2, name="words")
            cluster.until(lambda: cluster.folder(job).result() is not None, "the end is recorded", 60)
            cluster.kill("master")
            cluster.redis.flushall()
            cluster.start("master")
            cluster.until(lambda: bool(collector.named("job words")), "the trace is sent", within_s)

            (root,) = collector.named("job words")
            assert root.attributes["parallelrun.job.id"] == job
            assert {each.trace_id for each in collector.spans} == {root.trace_id}
            assert len(collector.named("mini-batch")) == 3
            cluster.until(lambda: not any((cluster.root / "traces").iterdir()), "nothing is owed", 30)


def test_scripts_and_steps_are_part_of_the_trace() -> None:
    cluster = Cluster(nodes=1, slots=1, api=True)
    with Collector() as collector:
        trace_to(cluster, collector.url, "master", "node000")
        with cluster, Client(cluster.api_url) as client:
            step = {"job": {"inputs": {"data": {"path": str(cluster.files(1))}}}}
            pipeline = cluster.submit_pipeline(SCRIPT, {"only": step})
            spec = {"entry_script": "entry.py", "code": str(cluster.code(SCRIPT)), "name": "traced"}
            spec["inputs"] = str(cluster.files(1))
            job = client.jobs.create(spec, traceparent=GIVEN).id
            cluster.until(lambda: bool(collector.named("job traced")), "the trace of the job is sent", 60)
            cluster.until(lambda: len(pipeline_spans(collector, pipeline)) == 2, "that of the pipeline, too", 60)

            (root,) = collector.named("job traced")
            assert (root.trace_id, root.parent_id) == ("a" * 32, "b" * 16)
            assert rows_of(cluster, job) == {SpanContext(root.trace_id, root.span_id, is_sampled=True).traceparent}
            outer, inner = pipeline_spans(collector, pipeline)
            assert (inner.trace_id, inner.parent_id) == (outer.trace_id, outer.span_id)


def pipeline_spans(collector: Collector, pipeline: str) -> list[Any]:
    """The span of a pipeline, and those of its steps."""
    ids = ("parallelrun.job.id", "parallelrun.pipeline.id")
    spans = [span for span in collector.spans if pipeline in [span.attributes.get(name) for name in ids]]
    return sorted(spans, key=lambda span: "parallelrun.pipeline.id" in span.attributes)


def test_a_collector_that_never_answers_delays_nothing() -> None:
    """The jobs end meanwhile, and their traces are owed."""
    cluster = Cluster(nodes=1, slots=1)
    with black_hole() as url:
        trace_to(cluster, url, "master", OTEL_EXPORTER_OTLP_TIMEOUT="100")
        with cluster:
            jobs = [cluster.submit(SCRIPT, inputs=cluster.files(1)) for _ in range(3)]
            cluster.until(lambda: all(cluster.folder(job).result() for job in jobs), "the jobs end", 60)
            cluster.until(lambda: not any(map(cluster.registry.is_active, jobs)), "nobody leads them", 60)
            there = sorted(path.name for path in (cluster.root / "traces").iterdir())
            assert there == sorted(f"{job}.0" for job in jobs)
            assert cluster.logged("master", "trace_not_sent") == 0


def test_a_run_on_this_machine_is_told_before_its_cluster_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or it is said that nobody has listened, and the job has completed as ever."""
    monkeypatch.setenv("TRACEPARENT", GIVEN)
    code = tmp_path / "src"
    code.mkdir()
    (code / "entry.py").write_text(SCRIPT)
    job = {"entry_script": "entry.py", "code": str(code), "inputs": str(code), "name": "local"}
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setattr(local_run, "TRACES_S", 60.0)
        result = parallelrun.run(job, output=tmp_path / "one")
        (root,) = collector.named("job local")
        assert (root.trace_id, root.parent_id) == ("a" * 32, "b" * 16)
        assert result.output is not None
        assert SpanContext.parse(result.output.read_text()) == (root.trace_id, root.span_id, True)
    with black_hole() as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setattr(local_run, "TRACES_S", 0.5)
        assert parallelrun.run(job, output=tmp_path / "other").job.state == "completed"
    assert "the collector has not taken the trace" in capsys.readouterr().err


def test_without_the_library_there_is_one_line_and_all_else_as_ever() -> None:
    cluster = Cluster(nodes=1, slots=1, without="traces.library")
    with Collector() as collector:
        trace_to(cluster, collector.url, "master", "node000")
        with cluster:
            job = cluster.submit(SCRIPT, inputs=cluster.files(1))
            cluster.until(lambda: not cluster.registry.is_active(job), "the job ends", 60)
            lines = [json.loads(line) for line in cluster.log("master").splitlines() if "no_traces" in line]
            assert ["pip install 'parallelrun[otel]'" in line["reason"] for line in lines] == [True]
            assert not (cluster.root / "traces").exists()
            assert not collector.requests


def test_without_a_collector_there_is_nothing_of_it() -> None:
    """Nor is a script told of the trace of whoever has started its agent."""
    cluster = Cluster(nodes=1, slots=1)
    cluster.environments["node000"] = {"TRACEPARENT": GIVEN, "TRACESTATE": "a=b"}
    with cluster:
        job = cluster.submit(SCRIPT, inputs=cluster.files(1))
        cluster.until(lambda: not cluster.registry.is_active(job), "the job ends", 60)
        assert rows_of(cluster, job) == {"none"}
        assert not (cluster.root / "traces").exists()
        assert "trace" not in cluster.log("master")
