"""Sends each file to an HTTP service, and returns its answers; none is asked for twice."""

import asyncio
import hashlib
import os
from pathlib import Path

import httpx

from parallelrun.script import ItemError, aremember, limit, recall


async def init():
    """Called once in each worker, before its first mini-batch."""
    global client, url
    url = os.environ.get("SERVICE_URL") or stand_in_url()
    key = os.environ.get("SERVICE_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    client = httpx.AsyncClient(headers=headers, timeout=60, limits=httpx.Limits(max_connections=None))


async def run(mini_batch):
    """Called for many mini-batches at once, each a list of paths; returns a row for each of them."""
    return await asyncio.gather(*(row_of(Path(path)) for path in mini_batch))


async def shutdown():
    await client.aclose()


async def row_of(path):
    """The row of the output; an ItemError has no row, and its neighbors count."""
    content = path.read_bytes()
    key = hashlib.sha256(content).hexdigest()
    answer = recall(key)  # of this job, by any worker, and of the job that it resumes from
    if answer is None:
        answer = await call(content)
        if isinstance(answer, ItemError):
            return answer
        await aremember(key, answer)
    return {"file": path.name, **answer}


async def call(content):
    """The service's answer; an ItemError if it will never answer to this."""
    while True:
        async with limit("service") as permit:
            answer = await client.post(url, content=content)
            if answer.status_code not in (429, 503):
                break
            pause_s = permit.retry_after(answer)  # nobody in the cluster calls it for so long
        await asyncio.sleep(pause_s)
    if answer.status_code in (400, 404, 413, 415, 422):
        return ItemError(f"HTTP {answer.status_code}: {answer.text[:500]}")
    answer.raise_for_status()  # anything else fails this try, and there is another one
    return answer.json()


def stand_in_url():
    """The URL of a service in this process, which answers offline and for nothing."""
    from stand_in import StandIn

    return StandIn(per_minute=6000).in_background() + "/score"
