"""The entry script: one call of the service for each mini-batch, a list of dicts."""

import asyncio
import hashlib
import json
import os

import httpx

from parallelrun.script import ItemError, aremember, limit, recall


async def init():
    global client
    key = os.environ.get("API_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    any_number = httpx.Limits(max_connections=None)
    client = httpx.AsyncClient(base_url=os.environ["API_URL"], headers=headers, timeout=60, limits=any_number)


async def run(mini_batch):
    texts = [row["text"] for row in mini_batch if row["text"].strip()]
    vectors = iter(await vectors_of(texts) if texts else [])
    return [
        {"id": row["id"], "vector": next(vectors)} if row["text"].strip() else ItemError("the text is empty")
        for row in mini_batch
    ]


async def shutdown():
    await client.aclose()


async def vectors_of(texts):
    """The vectors of some texts: those that are remembered, or those that the service has now."""
    question = {"model": os.environ["MODEL"], "input": texts}
    key = hashlib.sha256(json.dumps(question).encode()).hexdigest()
    vectors = recall(key)
    if vectors is None:
        vectors = await ask(question)
        await aremember(key, vectors)
    return vectors


async def ask(question):
    while True:
        async with limit("embeddings") as permit:
            answer = await client.post("/embeddings", json=question)
            if answer.status_code not in (429, 503):
                answer.raise_for_status()
                return [each["embedding"] for each in answer.json()["data"]]
            pause_s = permit.retry_after(answer)
        await asyncio.sleep(pause_s)
