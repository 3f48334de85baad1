"""`python -m benchmarks [--full] [NAME…]`: each prints `NAME key=value …` last, and stores it in results/NAME.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from benchmarks import SIZES, Size

BENCHMARKS = {
    "packing": "paths in one message, and what packing costs",
    "scheduling": "mini-batches cut, recorded and published each second",
    "folder": "one huge folder: to the first run(), and to the end of listing",
    "memory": "master and Redis while twenty huge folders are listed",
    "noop": "what a mini-batch costs when run() does nothing",
    "one_by_one": "the same, one mini-batch in flight for each worker",
    "hashing": "real work on 64 KB files, compared with other systems",
    "store": "inputs in an object store, compared with loops over it and with local files",
    "images": "JPEGs through a network of torch, compared with a loop in two processes and with other systems",
    "gpu": "how busy a GPU is kept, by images and by texts, beside a loop of torch's DataLoader",
    "running": "what a cluster costs each second, idle and while workers work",
    "tail": "mini-batches of very different lengths, beside list scheduling that knows all of them",
    "many": "very many mini-batches in one job",
    "auto_size": "sizes of mini-batches that a job chooses, beside given ones",
    "concatenation": "segments into one output, compared with `cat`",
    "thousand_nodes": "a thousand simulated nodes against one Redis and one leader",
    "table": "large tables, counted and added up, compared with pandas: speed, memory",
    "frames": "a table with one more column, returned as DataFrames, beside DataFrame.to_csv",
    "parquet": "large Parquet files, in row groups of many rows and of few, beside pyarrow into pandas",
    "jsonl": "a large file of JSON lines, beside pandas and pyarrow",
    "arrow": "reading of tables in each form that run() may have, beside bare loops: CPU of one process",
    "cold": "a trivial job from nothing, beside one process that imports the usual libraries",
    "whole_jobs": "jobs over CSV, Parquet and JSON lines from nothing, beside a loop that starts, too",
    "idle": "what a cluster in the background costs while nobody submits anything: CPU and memory",
    "small_jobs": "many jobs of two mini-batches each, submitted at once to two nodes: jobs a second, CPU, files",
    "worker_start": "the first worker of a job, forked from a template and by itself: to its run()",
    "latency": "one trivial job, on a warm cluster and from nothing",
    "models": "memory of the weights that workers of one node read: mapped, and loaded by each",
    "fairness": "a small job behind a long one: how soon it begins, and what that costs the long one",
    "isolation": "one bad item in a hundred: what it costs to keep its neighbours",
    "waiting": "a function that waits for a service, beside an asyncio loop, and a limit on its calls",
    "studio": "pictures of a very large job for the web page: time, bytes, memory; and what following one costs",
    "first_look": "the first look at a finished job of a million mini-batches in a browser, and each click after it",
    "adviser": "planted bottlenecks: found, mended as advised, and gaining what was predicted?",
    "year": "a job a minute for a year below a limit, by the policy of retention; a sweep over thousands of folders",
    "pipeline": "steps in a row and side by side, and what a pipeline costs that waits",
}
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run the requested benchmarks; returns 0 if all of them ran."""
    names = "".join(f"\n  {name:16}{what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="benchmarks",
        description=f"{__doc__}\n\nBenchmarks; all of them if none is named:{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=SIZES, default="quick", help="tiny only shows that it runs")
    parser.add_argument("--full", action="store_const", const="full", dest="size", help="at full size, with rivals")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there is: {', '.join(BENCHMARKS)}")
    return max(_run(name, options.size) for name in options.names or BENCHMARKS)


def _run(name: str, size: Size) -> int:
    print(f"{name} ({size}): {BENCHMARKS[name]}", flush=True)
    began = time.monotonic()
    try:
        figures = import_module(f"benchmarks.{name}").main(size)
    except Exception:
        traceback.print_exc()
        print(f"{name} failed=1")
        return 1
    last = f"{name} {' '.join(f'{key}={value}' for key, value in figures.items())}"
    if size != "tiny":
        _keep(name, size, time.monotonic() - began, figures)
    print(last, flush=True)
    return 0


def _keep(name: str, size: Size, took_s: float, figures: dict[str, object]) -> None:
    RESULTS.mkdir(exist_ok=True)
    record = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "size": size,
        "took_s": round(took_s, 1),
        **figures,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
