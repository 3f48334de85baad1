"""The entry script: sends requests in the format of OpenAI's Batch API, and returns a line of its output for each."""

import asyncio
import hashlib
import json
import os

import httpx

from parallelrun.script import PermitRefused, aremember, limit, recall

TRIES = 4
"""Of a request that the service can't answer: 500, 502, 504, or no answer at all."""


async def init():
    global client
    key = os.environ.get("API_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    any_number = httpx.Limits(max_connections=None)
    client = httpx.AsyncClient(base_url=os.environ["API_URL"], headers=headers, timeout=120, limits=any_number)


async def run(mini_batch):
    return await asyncio.gather(*map(line_of, mini_batch))


async def shutdown():
    await client.aclose()


async def line_of(request):
    """The line of a request: an answer of the service, whatever its status, or an error."""
    key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    line = recall(key)
    if line is None:
        line = {"id": f"batch_req_{key[:24]}", "custom_id": request.get("custom_id"), "response": None, "error": None}
        wrong = problem_of(request)
        if wrong:
            return {**line, "error": {"code": "invalid_request", "message": wrong}}
        try:
            answer = await answer_to(request)
        except httpx.HTTPError as error:
            return {**line, "error": {"code": "no_answer", "message": f"{type(error).__name__}: {error}"}}
        except PermitRefused as error:  # more tokens than the limit has in a minute
            return {**line, "error": {"code": "rate_limit_exceeded", "message": str(error)}}
        line["response"] = {
            "status_code": answer.status_code,
            "request_id": answer.headers.get("x-request-id", ""),
            "body": body_of(answer),
        }
        if answer.status_code < 500:
            await aremember(key, line)
    return line


def problem_of(request):
    """The reason why a request can't be sent; None if it can."""
    if not isinstance(request.get("custom_id"), str) or not request["custom_id"]:
        return "custom_id must be a text"
    if request.get("method") != "POST":
        return "method must be POST"
    if not isinstance(request.get("url"), str) or not request["url"].startswith("/v1/"):
        return "url must begin with /v1/"
    return problem_of_body(request.get("body"))


def problem_of_body(body):
    if not isinstance(body, dict):
        return "body must be an object"
    if not is_number_of_tokens(body.get("max_tokens")):
        return "max_tokens must be a whole number"
    try:
        json.dumps(body, allow_nan=False)
    except ValueError:
        return "body has a number that is none in JSON, such as NaN"
    return None


def is_number_of_tokens(value):
    return value is None or (isinstance(value, int) and value >= 0)


async def answer_to(request):
    """The answer of the service, once it is one. Raises httpx.HTTPError if there is none."""
    body = request["body"]
    tokens = len(json.dumps(body)) // 4 + (body.get("max_tokens") or 0)
    tries = 0
    while True:
        pause_s = 2**tries / 4
        try:
            async with limit("openai", tokens=tokens) as permit:
                answer = await client.post(request["url"], json=body)
                if answer.status_code in (429, 503):
                    pause_s = permit.retry_after(answer)  # the service's own wish, and no try of this request
                else:
                    tries += 1
                    if answer.status_code < 500 or tries == TRIES:
                        return answer
        except httpx.TransportError:
            tries += 1
            if tries == TRIES:
                raise
        await asyncio.sleep(pause_s)


def body_of(answer):
    try:
        return answer.json()
    except ValueError:
        return {"error": {"message": answer.text[:2000], "type": "no_json", "param": None, "code": None}}
