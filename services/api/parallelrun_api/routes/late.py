"""The routes of modules that are imported when the first of them is asked for.

A short job asks for what five of them have: importing all 22 was 30 of the 250 ms of CPU that the API's imports take.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module

from starlette.routing import Router

from parallelrun_api.http.late_router import LateRouter
from parallelrun_api.http.lazy_fastapi import LazyRoute
from parallelrun_api.routes.router import Operations
from parallelrun_core.service.process_start import prepare_structs


class LateRoutes(LateRouter):
    """All routes of an application, for a request that those before this one don't answer.

    Args:
        modules: names of the modules in this package, each with its `router`, in the order of the contract.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        super().__init__(self._router_of_all)
        self._modules = modules

    @cached_property
    def operations(self) -> list[Operations]:
        """The routers of all modules, in order; imports them."""
        return [import_module(f"{__package__}.{name}").router for name in self._modules]

    @property
    def routes(self) -> list[LazyRoute]:
        return [route for router in self.operations for route in router.routes]

    def _router_of_all(self) -> Router:
        router = Router(self.routes, redirect_slashes=False)
        prepare_structs()
        return router
