"""What `import parallelrun` offers, and what it costs."""

import json
import subprocess
import sys

import pytest

import parallelrun

LOADED_BY = """
import json, sys
{}
print(json.dumps(sorted(sys.modules)))
"""


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", LOADED_BY.format(statement)], capture_output=True, check=True, text=True
    )
    return set(json.loads(done.stdout))


def test_all_is_sorted_and_without_doubles() -> None:
    assert parallelrun.__all__ == sorted(set(parallelrun.__all__))


CALLED_OTHERWISE = {"Failure": "JobFailure", "RemoteFile": "FileEntry", "Step": "PipelineStep"}
"""Classes that the API calls by another name."""


@pytest.mark.parametrize("name", parallelrun.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(parallelrun, name).__name__ == CALLED_OTHERWISE.get(name, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        getattr(parallelrun, "Clint")  # noqa: B009 - the type checker would refuse it


def test_dir_shows_the_names() -> None:
    assert set(parallelrun.__all__) <= set(dir(parallelrun))


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"fastapi", "httpx", "msgspec", "numpy", "pandas", "pydantic", "redis", "rich", "rq", "typer", "yaml"}

    assert loaded_by("import parallelrun") & heavy == set()


def test_the_client_needs_no_pandas_and_no_web_framework() -> None:
    heavy = {"fastapi", "numpy", "pandas", "pydantic", "redis", "rq", "typer"}

    assert loaded_by("from parallelrun import Client") & heavy == set()


def test_help_loads_neither_client_nor_core() -> None:
    loaded = loaded_by("""
import contextlib, io
from parallelrun.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["job", "--help"])
""")

    assert loaded & {"httpx", "redis", "rich", "yaml"} == set()
    light = {"parallelrun_core", "parallelrun_core.figures"}
    assert {name for name in loaded if name.startswith("parallelrun_core")} <= light


def test_the_constants_that_samples_of_v2_import_have_the_values_of_azure_ml() -> None:
    from parallelrun import AssetTypes, Input, InputOutputModes

    step_input = Input(type=AssetTypes.URI_FOLDER, path="data", mode=InputOutputModes.RO_MOUNT)
    assert step_input.fields() == {"type": "uri_folder", "path": "data", "mode": "ro_mount"}
    assert (AssetTypes.URI_FILE, AssetTypes.MLTABLE) == ("uri_file", "mltable")
    assert (InputOutputModes.MOUNT, InputOutputModes.DOWNLOAD, InputOutputModes.UPLOAD) == (
        "mount",
        "download",
        "upload",
    )
