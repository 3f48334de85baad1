"""Imports FastAPI, quickly: without what it builds for descriptions, and looks for of an earlier release of pydantic.

The models of an OpenAPI document are built once somebody asks for one, which hardly any server of a short job is: 45 ms
of the 270 that the API's own imports take. FastAPI imports `pydantic.v1`, another 20, to see that no model is of it.
"""

from __future__ import annotations

import sys
from typing import Any, cast

from pydantic import BaseModel

cast("dict[str, Any]", sys.modules).setdefault("pydantic.v1", None)  # as if it weren't there
BaseModel.model_config["defer_build"] = True
try:
    import fastapi.openapi.models  # noqa: F401 - with all of FastAPI
finally:
    del BaseModel.model_config["defer_build"]
