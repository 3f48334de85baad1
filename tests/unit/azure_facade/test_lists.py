"""Lists of the client cost much, and wait for their turn."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from parallelrun_api.azure import assets, endpoint_jobs, endpoints, schedules
from parallelrun_api.http.concurrency import ConcurrencyLimiter
from parallelrun_api.http.errors import TooManyReads

LISTS: list[tuple[Callable[..., Coroutine[Any, Any, Any]], dict[str, str]]] = [
    (assets.list_names, {"kind": "data"}),
    (assets.list_versions, {"kind": "data", "name": "rows"}),
    (schedules.list_schedules, {}),
    (endpoints.list_endpoints, {}),
    (endpoints.list_deployments, {"name": "scoring"}),
    (endpoint_jobs.list_endpoint_jobs, {"name": "scoring"}),
]


@pytest.mark.parametrize("route,names", LISTS, ids=[route.__name__ for route, _ in LISTS])
def test_a_list_is_read_in_the_lane_of_lists(
    route: Callable[..., Coroutine[Any, Any, Any]], names: dict[str, str]
) -> None:
    full = ConcurrencyLimiter(at_once=1, waiting=-1)
    facade = SimpleNamespace(context=SimpleNamespace(job_lists=full, endpoints=SimpleNamespace(all=list, get=str)))
    request = Request({"type": "http", "method": "GET", "path": "/azure/x", "query_string": b"", "headers": []})

    with pytest.raises(TooManyReads):
        asyncio.run(route(request=request, facade=facade, **names))
