"""What the server doesn't import before it is needed: it starts with each `parallelrun run`."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_the_face_for_azures_client_is_imported_by_the_first_request_to_it() -> None:
    code = "import sys, parallelrun_api.main; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "parallelrun_api.azure.auth" in modules
    assert not {"parallelrun_api.azure.routes", "parallelrun_api.azure.jobs"}.intersection(modules)


@pytest.mark.parametrize("first", ["main", "app", "routes.jobs"])
def test_fastapis_models_of_a_document_are_not_built_whichever_module_comes_first(first: str) -> None:
    code = f"import parallelrun_api.{first}, fastapi.openapi.models as m; print(m.OpenAPI.__pydantic_complete__)"
    built = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert built == "False\n", "parallelrun_api must import FastAPI in unbuilt_models"
