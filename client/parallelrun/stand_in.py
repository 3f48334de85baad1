"""A service to try out scripts with, offline: it answers like OpenAI's API, and like any other that takes data by HTTP.

    python -m parallelrun.stand_in --port 8765 --per-minute 6000

`POST /v1/chat/completions` and `/v1/embeddings` answer in the shape of OpenAI's API, the same to the same question. Any
other POST is told the number of bytes and words that it has sent. Beyond the rate the answer is a 429 with
`Retry-After`. `GET /stats` says how many calls were answered and refused, and how many were made at once.

This file needs the standard library only, so it can be copied beside a script.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Refused(Exception):
    """A call is refused: a status, and the message of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class StandIn(ThreadingHTTPServer):
    """The service. It listens once this is created, and answers while `serve_forever()` or `in_background()` runs it.

    Args:
        port: on the loopback interface; 0: any free one.
        answer_s: seconds until each answer.
        per_minute: calls that are answered in a minute, evenly, with a second's worth at once; 0: any number.
    """

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, port: int = 0, *, answer_s: float = 0.05, per_minute: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.answer_s = answer_s
        self.stats = {"answered": 0, "refused": 0, "at_once": 0, "most_at_once": 0}
        self._per_s = per_minute / 60
        self._free = max(1.0, self._per_s)
        self._at = time.monotonic()
        self._lock = threading.Lock()

    def in_background(self) -> str:
        """Answer in a thread of this process, for as long as it lives; returns the URL."""
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self.url

    def begin(self) -> bool:
        """Count a call that begins; returns whether the rate allows it."""
        with self._lock:
            now = time.monotonic()
            self._free = min(max(1.0, self._per_s), self._free + (now - self._at) * self._per_s)
            self._at = now
            is_allowed = not self._per_s or self._free >= 1
            self._free -= is_allowed
            self.stats["at_once"] += 1
            self.stats["most_at_once"] = max(self.stats["most_at_once"], self.stats["at_once"])
            self.stats["answered" if is_allowed else "refused"] += 1
            return is_allowed

    def end(self) -> None:
        """Count a call that has ended."""
        with self._lock:
            self.stats["at_once"] -= 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: StandIn

    def do_GET(self) -> None:
        if self.path == "/stats":
            self._send(200, self.server.stats)
        else:
            self._send(404, _error("there is only /stats to get"))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_allowed = self.server.begin()
        try:
            if not is_allowed:
                self._send(429, _error("too many calls in this minute"), {"Retry-After": "1"})
                return
            time.sleep(self.server.answer_s)
            self._send(200, answer(self.path, body))
        except Refused as error:
            self._send(error.status, _error(str(error)))
        finally:
            self.server.end()

    def _send(self, status: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: there are thousands of calls."""


def answer(path: str, body: bytes) -> dict[str, Any]:
    """Return the answer to a call. Raises Refused."""
    if not path.startswith("/v1/"):
        if not body.strip():
            raise Refused(422, "nothing was sent")
        return {"bytes": len(body), "words": len(body.split())}
    try:
        request = json.loads(body)
    except ValueError:
        request = None
    if not isinstance(request, dict):
        raise Refused(400, "the body must be a JSON object")
    model = request.get("model")
    if not isinstance(model, str) or not model:
        raise Refused(400, "you must provide a model parameter")
    if path == "/v1/chat/completions":
        return _chat(request, model)
    if path == "/v1/embeddings":
        return _embeddings(request, model)
    raise Refused(404, f"unknown path: {path}")


def _chat(request: dict[str, Any], model: str) -> dict[str, Any]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise Refused(400, "'messages' must be a list with at least one message")
    words = str(messages[-1].get("content") or "").split()
    if not words:
        raise Refused(400, "the last message has no content")
    text = f"{len(words)} words, the longest is {max(words, key=len)}"
    return {
        "id": f"chatcmpl-{_digest(request)}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": _usage(len(words), len(text.split())),
    }


def _embeddings(request: dict[str, Any], model: str) -> dict[str, Any]:
    texts = request.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise Refused(400, "'input' must be a text, or a list of texts")
    vectors = [[byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]] for text in texts]
    return {
        "object": "list",
        "model": model,
        "data": [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(vectors)],
        "usage": _usage(sum(len(text.split()) for text in texts), 0),
    }


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _digest(request: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:24]


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def main() -> None:
    """Answer until Ctrl-C."""
    parser = argparse.ArgumentParser(description="A service to try out scripts with, offline.")
    parser.add_argument("--port", type=int, default=8765, help="on the loopback interface")
    parser.add_argument("--answer-s", type=float, default=0.05, help="seconds until each answer")
    parser.add_argument("--per-minute", type=int, default=0, help="calls that are answered in a minute; 0: any number")
    arguments = parser.parse_args()
    service = StandIn(arguments.port, answer_s=arguments.answer_s, per_minute=arguments.per_minute)
    print(f"answers at {service.url}, until Ctrl-C", flush=True)
    try:
        service.serve_forever()
    except KeyboardInterrupt:
        service.server_close()


if __name__ == "__main__":
    main()
