"""Asks a language model about each row of a table, by an API like OpenAI's, and pays for no answer twice."""

import asyncio
import hashlib
import json
import os

import httpx

from parallelrun.script import ItemError, aremember, limit, recall

MOST_TOKENS = 100


async def init():
    """Called once in each worker, before its first mini-batch."""
    global client
    url = os.environ.get("LLM_URL") or stand_in_url()
    key = os.environ.get("LLM_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    any_number = httpx.Limits(max_connections=None)
    client = httpx.AsyncClient(base_url=url, headers=headers, timeout=60, limits=any_number)


async def run(mini_batch):
    """Called for many mini-batches at once, each a pandas DataFrame; returns a row for each of its rows."""
    return await asyncio.gather(*(row_of(row) for row in mini_batch.to_dict("records")))


async def shutdown():
    await client.aclose()


async def row_of(row):
    """The row of the output; an ItemError has no row, and its neighbors count."""
    if not isinstance(row["text"], str) or not row["text"].strip():
        return ItemError("the row has no text")
    question = {
        "model": os.environ["LLM_MODEL"],
        "messages": [
            {"role": "system", "content": "Say in a few words what the text is about."},
            {"role": "user", "content": row["text"]},
        ],
        "max_tokens": MOST_TOKENS,
    }
    key = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
    answer = recall(key)  # of this job, by any worker, and of the job that it resumes from
    if answer is None:
        answer = await ask(question)
        if isinstance(answer, ItemError):
            return answer
        await aremember(key, answer)
    return {"id": row["id"], "answer": answer["choices"][0]["message"]["content"], "tokens": answer["usage"]}


async def ask(question):
    """The service's answer; an ItemError if it will never answer this question."""
    tokens = len(json.dumps(question)) // 4 + MOST_TOKENS
    while True:
        async with limit("llm", tokens=tokens) as permit:
            answer = await client.post("/chat/completions", json=question)
            if answer.status_code not in (429, 503):
                break
            pause_s = permit.retry_after(answer)  # nobody in the cluster calls it for so long
        await asyncio.sleep(pause_s)
    if answer.status_code in (400, 404, 422):
        return ItemError(f"HTTP {answer.status_code}: {answer.text[:500]}")
    answer.raise_for_status()  # anything else fails this try, and there is another one
    return answer.json()


def stand_in_url():
    """The URL of a service in this process, which answers offline and for nothing."""
    from stand_in import StandIn

    return StandIn(per_minute=6000).in_background() + "/v1"
