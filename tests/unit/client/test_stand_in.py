"""The service to try out scripts with answers as a real one does."""

from __future__ import annotations

import httpx
import pytest

from parallelrun.stand_in import StandIn

QUESTION = {"model": "any", "messages": [{"role": "user", "content": "two words"}]}


@pytest.fixture
def service() -> StandIn:
    return StandIn(answer_s=0)


def test_stand_in_answers_in_the_shape_of_openai_and_the_same_to_the_same(service: StandIn) -> None:
    url = service.in_background()

    first, second = (httpx.post(f"{url}/v1/chat/completions", json=QUESTION).json() for _ in range(2))
    vectors = httpx.post(f"{url}/v1/embeddings", json={"model": "any", "input": ["a", "b"]}).json()

    assert first == second
    assert first["choices"][0]["message"] == {"role": "assistant", "content": "2 words, the longest is words"}
    assert first["usage"]["prompt_tokens"] == 2
    assert [each["index"] for each in vectors["data"]] == [0, 1]
    service.shutdown()
    service.server_close()


@pytest.mark.parametrize(
    "path, body, status, message",
    [
        ("/v1/chat/completions", b"[]", 400, "must be a JSON object"),
        ("/v1/chat/completions", b"{}", 400, "model"),
        ("/v1/chat/completions", b'{"model": "m"}', 400, "messages"),
        ("/v1/chat/completions", b'{"model": "m", "messages": [{"content": ""}]}', 400, "no content"),
        ("/v1/embeddings", b'{"model": "m", "input": [""]}', 400, "input"),
        ("/v1/images", b'{"model": "m"}', 404, "/v1/images"),
        ("/score", b" ", 422, "nothing"),
    ],
)
def test_stand_in_refuses_what_a_service_refuses(
    service: StandIn, path: str, body: bytes, status: int, message: str
) -> None:
    url = service.in_background()

    answer = httpx.post(url + path, content=body)

    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]
    service.shutdown()
    service.server_close()


def test_stand_in_refuses_beyond_its_rate_and_counts() -> None:
    service = StandIn(answer_s=0, per_minute=1)
    url = service.in_background()

    answers = [httpx.post(f"{url}/score", content=b"a word") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 429, 429]
    assert answers[1].headers["Retry-After"] == "1"
    assert httpx.get(f"{url}/stats").json() == {"answered": 1, "refused": 2, "at_once": 0, "most_at_once": 1}
    service.shutdown()
    service.server_close()
