"""The web page and its server, with one very large job that has ended, and one that runs.

    records.py   the folders of these jobs, made by the product's own writers
    server.py    what the page asks of the server
    page.py      the page in a real browser, where there is one

Of the job that has ended: the first look, until the server has read all of its records; then closer looks at random
places, from all of it down to a single screenful; the bytes of all that the page of a job opens with; the server's
memory. Of the one that runs: what it costs the server, in percent of one CPU, that a page follows it while 200
mini-batches a second are decided: its events, a picture of the mini-batches every second, all others every five. Of
both, in Chromium: the seconds until the page can be used, the bytes that came over the wire, and the memory of its
scripts once it has shown all.
"""

from __future__ import annotations

from statistics import median, quantiles

from benchmarks import Size
from benchmarks.measure import own_cpu_seconds, peak_mb
from benchmarks.stage import Stage
from benchmarks.studio import page
from benchmarks.studio.records import Running, finished
from benchmarks.studio.server import PICTURES, Server, first_look, follow, get, pictures, serving, zooms


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    count, looks, seconds, visits = {
        "tiny": (2_000, 6, 2.0, 1), "quick": (1_000_000, 100, 20.0, 5), "full": (1_000_000, 400, 60.0, 9),
    }[size]  # fmt: skip
    with Stage() as stage:
        job = finished(stage, count)
        with serving(stage) as running_server:
            measured = _ended(running_server, job, looks)
            opened = page.measured(running_server, job, visits)
            running = Running(stage, count)
            measured |= _running(running_server, running, seconds)
            with running.at_work():
                followed = page.measured(running_server, running.job_id, visits)
            running.close()
            measured["server_mb"] = f"{peak_mb(running_server.pid):.0f}"
    return {
        "mini_batches": count,
        **measured,
        **{f"page_{name}": value for name, value in opened.items()},
        **{f"running_page_{name}": value for name, value in followed.items()},
    }


def _ended(asked: Server, job: str, looks: int) -> dict[str, object]:
    client, pid = asked.client, asked.pid
    empty_mb = peak_mb(pid)
    cpu_s = own_cpu_seconds(pid)
    first_s, requests, slowest_ms = first_look(client, job)
    first_cpu_s = own_cpu_seconds(pid) - cpu_s
    print(f"  first look: {first_s:.1f} s in {requests} requests, the slowest {slowest_ms:.0f} ms", flush=True)
    cpu_s = own_cpu_seconds(pid)
    times = zooms(client, job, looks)
    zoom_cpu_ms = 1000 * (own_cpu_seconds(pid) - cpu_s) / len(times)
    p99 = quantiles(times, n=100)[98]
    print(f"  tiles: {median(times):.1f} ms, p99 {p99:.1f} ms", flush=True)
    took_ms = pictures(client, job, max(3, looks // 10))
    print("  " + ", ".join(f"{name} {took:.1f} ms" for name, took in took_ms.items()), flush=True)
    opened = ["", "/tiles?buckets=2048", *(f"/{name}" for name in PICTURES)]
    opened_bytes = sum(get(client, f"/v1/jobs/{job}{path}")[1] for path in opened)
    return {
        "first_look_s": f"{first_s:.1f}",
        "first_look_cpu_s": f"{first_cpu_s:.1f}",
        "first_look_slowest_ms": f"{slowest_ms:.0f}",
        "zoom_ms": f"{median(times):.1f}",
        "zoom_p99_ms": f"{p99:.1f}",
        "zoom_cpu_ms": f"{zoom_cpu_ms:.1f}",
        **{f"{name}_ms": f"{took:.1f}" for name, took in took_ms.items()},
        "opened_kb": f"{opened_bytes / 1000:.1f}",
        "server_mb_at_start": f"{empty_mb:.0f}",
    }


def _running(asked: Server, running: Running, seconds: float) -> dict[str, object]:
    followed = follow(asked, running, seconds)
    print(f"  following: {followed['percent']:.2f} % of a CPU", flush=True)
    return {
        "following_percent": f"{followed['percent']:.2f}",
        "following_decided_per_s": f"{followed['decided_per_s']:.0f}",
        "following_tiles_ms": f"{followed['tiles_ms']:.1f}",
    }
