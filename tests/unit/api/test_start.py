"""What the server doesn't import before it is needed: it starts with each `parallelrun run`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from starlette.routing import Match

from parallelrun_api.app import create_app
from parallelrun_api.context import build_context
from parallelrun_api.http.token import Token
from parallelrun_api.settings import ApiSettings


def test_what_few_servers_are_asked_for_is_imported_by_the_first_request_to_it() -> None:
    code = "import sys, parallelrun_api.main; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"parallelrun_api.azure.auth", "parallelrun_api.routes.jobs"}.issubset(modules)
    assert not {"parallelrun_api.azure.routes", "parallelrun_api.azure.jobs"}.intersection(modules)
    assert not {f"parallelrun_api.routes.{name}" for name in ("previews", "mini_batches", "admin")} & {*modules}
    app = create_app(build_context(ApiSettings()), Token())
    for route in app.state.late.routes:  # none of those that are there at once answers in its place
        scope = {"type": "http", "method": min(route.methods), "path": re.sub("{[^}]*}", "x", route.path)}
        answering = next(each for each in app.router.routes if each.matches(dict(scope))[0] is Match.FULL)
        assert answering in (route, app.state.late), route.path


@pytest.mark.parametrize("first", ["main", "app", "routes.jobs"])
def test_fastapis_models_of_a_document_are_not_built_whichever_module_comes_first(first: str) -> None:
    code = f"import parallelrun_api.{first}, fastapi.openapi.models as m; print(m.OpenAPI.__pydantic_complete__)"
    built = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert built == "False\n", "parallelrun_api must import FastAPI in unbuilt_models"
