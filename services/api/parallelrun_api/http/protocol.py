"""Probes of the private parts of uvicorn that the server builds on, and what it does without them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import iscoroutinefunction, signature
from types import ModuleType
from typing import Final

from parallelrun_api.http.connections import Connections
from parallelrun_core.service.telemetry import logger

PLAIN: Final = "h11"
"""The plain protocol's name in uvicorn's configuration."""
_ATTRIBUTES: Final = {
    "H11Protocol": {"conn", "cycle", "flow", "scope", "transport"},
    "RequestResponseCycle": {"more_body", "response_complete"},
    "FlowControl": {"read_paused", "write_paused"},
}
_METHODS: Final = (
    "connection_made", "connection_lost", "data_received", "resume_writing", "on_response_complete",
    "send_400_response",
)  # fmt: skip


def has_private_parts(implementation: ModuleType | object) -> bool:
    """Return whether uvicorn's module for HTTP/1.1 has what `wire` uses of it: classes, attributes and methods."""
    for name, attributes in _ATTRIBUTES.items():
        code = getattr(getattr(getattr(implementation, name, None), "__init__", None), "__code__", None)
        if code is None or not attributes <= set(code.co_names):
            return False
    return all(callable(getattr(getattr(implementation, "H11Protocol", None), name, None)) for name in _METHODS)


def has_ticks(server: type) -> bool:
    """Return whether uvicorn's server has a loop that can be replaced: one that awaits `on_tick(counter)`."""
    loop, on_tick = getattr(server, "main_loop", None), getattr(server, "on_tick", None)
    return (
        iscoroutinefunction(loop)
        and iscoroutinefunction(on_tick)
        and list(signature(loop).parameters) == ["self"]
        and list(signature(on_tick).parameters) == ["self", "counter"]
        and "on_tick" in loop.__code__.co_names
    )


def protocol_for(
    connections: Connections, *, module: str = "uvicorn.protocols.http.h11_impl"
) -> Callable[..., asyncio.Protocol] | str:
    """Return what uvicorn is to make connections of.

    With a uvicorn that looks different, that is its plain protocol: the API serves, without the limits on how slow a
    client may be, and the log says so.
    """
    try:
        is_as_expected = has_private_parts(import_module(module))
    except ImportError:
        is_as_expected = False
    if not is_as_expected:
        logger().warning(
            "slow_clients_unlimited",
            reason="this release of uvicorn is not one that was tested: install the one of requirements/",
        )
        return PLAIN
    from parallelrun_api.http.wire import BoundedHttp

    return partial(BoundedHttp, connections=connections)
