"""Routes for Azure ML's client take what they need from the path: the client knows nothing of parameters of ours."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

import parallelrun_api.azure as azure_facade

ROUTES = [
    route
    for module in walk_packages(azure_facade.__path__, f"{azure_facade.__name__}.")
    for router in [getattr(import_module(module.name), "router", None)]
    if isinstance(router, APIRouter)
    for route in router.routes
    if isinstance(route, APIRoute)
]


def test_routes_are_found() -> None:
    assert len(ROUTES) > 50


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{sorted(route.methods)[0]} {route.name}")
def test_route_needs_no_query_that_the_client_does_not_know(route: APIRoute) -> None:
    required = [each.name for each in route.dependant.query_params if each.field_info.is_required()]
    assert required == []
