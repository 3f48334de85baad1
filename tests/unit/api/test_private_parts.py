"""The private parts of uvicorn and FastAPI: when they look different, they are left alone, and the API serves
without them."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, routing
from fastapi.testclient import TestClient
from uvicorn.protocols.http import h11_impl

from parallelrun_api.http import protocol
from parallelrun_api.http.connections import ConnectionLimits, Connections
from parallelrun_api.http.lazy_fastapi import LazyRoute
from parallelrun_api.http.wire import BoundedHttp

PARTS = {name: getattr(h11_impl, name) for name in ("FlowControl", "H11Protocol", "RequestResponseCycle")}


class Different:
    def __init__(self) -> None:
        self.other = None


def test_uvicorn_has_the_private_parts_that_are_used() -> None:
    chosen = protocol.protocol_for(Connections(ConnectionLimits()))
    assert isinstance(chosen, partial)
    assert chosen.func is BoundedHttp


@pytest.mark.parametrize("name", sorted(PARTS))
def test_uvicorn_whose_private_parts_look_different_is_used_without_them(name: str) -> None:
    assert protocol.has_private_parts(SimpleNamespace(**PARTS))
    assert not protocol.has_private_parts(SimpleNamespace(**{**PARTS, name: Different}))
    assert not protocol.has_private_parts(SimpleNamespace(**{**PARTS, name: None}))


def test_uvicorn_without_the_module_serves_with_its_plain_protocol() -> None:
    connections = Connections(ConnectionLimits())
    assert protocol.protocol_for(connections, module="uvicorn.no_such_module") == protocol.PLAIN
    assert asyncio.run(answer_of(protocol.protocol_for(connections, module="uvicorn.logging"))) == 200


def test_uvicorn_has_the_loop_that_is_replaced() -> None:
    assert protocol.has_ticks(uvicorn.Server)


@pytest.mark.parametrize("name", ["main_loop", "on_tick"])
def test_uvicorn_whose_loop_looks_different_runs_its_own(name: str) -> None:
    def synchronous(self: object, counter: int) -> bool:
        return True

    async def with_more(self: object, counter: int, now: float) -> bool:
        return True

    for different in (None, synchronous, with_more):
        assert not protocol.has_ticks(type("Server", (uvicorn.Server,), {name: different}))


async def answer_of(http: Callable[..., asyncio.Protocol] | str) -> int:
    """The status that a server with this protocol answers."""

    async def app(scope: object, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, http=http, lifespan="off", log_config=None, ws="none")  # type: ignore[arg-type]
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{listener.getsockname()[1]}")
        server.should_exit = True
        await serving
    return answer.status_code


@pytest.mark.parametrize("has_cache", [True, False])
def test_fastapi_reads_no_source_of_an_endpoint_unless_it_remembers_it_elsewhere(
    has_cache: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endpoint(number: int) -> dict[str, int]:
        return {"number": number}

    if not has_cache:
        monkeypatch.delattr(routing, "_endpoint_context_cache")
        monkeypatch.setattr(routing, "_extract_endpoint_context", lambda _: {})  # it uses that cache
    else:
        monkeypatch.setattr(inspect, "getsourcelines", pytest.fail)
    route = LazyRoute("GET", "/numbers", endpoint, {"response_model": None})
    app = FastAPI(routes=[route])
    with TestClient(app) as client:
        assert client.get("/numbers", params={"number": 7}).json() == {"number": 7}
