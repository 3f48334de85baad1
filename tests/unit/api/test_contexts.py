"""What images are built of is stored when a job is submitted, if its compute builds images."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_api.submission.build_contexts import with_context_stored
from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import code_store
from parallelrun_core.names.assets import stored_code
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.path_rule import PathRule, Places


def spec_of(path: object, dockerfile: str = "Dockerfile") -> JobSpec:
    environment = {"build": {"path": str(path), "dockerfile_path": dockerfile}, "pip": ["six"]}
    return JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "environment": environment})


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "in" / "docker"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM base\n")
    return folder


def stored(tmp_path: Path, spec: JobSpec, compute: str = "pool") -> dict[str, object]:
    rule = PathRule(tmp_path / "root", Places(roots=[str(tmp_path / "in")]))
    return with_context_stored(tmp_path / "root", rule, spec, {"compute": compute})


def test_a_folder_is_stored_under_the_name_of_its_content(tmp_path: Path, context: Path) -> None:
    placed = stored(tmp_path, spec_of(context))
    recorded = JobSpec.parse(spec_of(context).model_dump(mode="json") | placed)

    assert recorded.environment.build is not None
    name = stored_code(recorded.environment.build.path)
    assert (code_store(tmp_path / "root") / name / "Dockerfile").read_text() == "FROM base\n"
    assert recorded.environment.pip == ("six",)
    assert stored(tmp_path, recorded) == {"compute": "pool"}, "it is there by now"


def test_where_nothing_is_built_nothing_is_looked_at(tmp_path: Path) -> None:
    assert stored(tmp_path, spec_of("/no/such/folder"), compute="") == {"compute": ""}


@pytest.mark.parametrize(
    "path, dockerfile, pointer, message",
    [
        ("in/nowhere", "Dockerfile", "/environment/build/path", "there is no folder"),
        ("in/docker", "other", "/environment/build/dockerfile_path", "there is no file 'other'"),
        ("elsewhere", "Dockerfile", "/environment/build/path", "outside"),
        ("azureml:code/" + "a" * 64, "Dockerfile", "/environment/build/path", "is not stored here"),
    ],
)
def test_what_can_not_be_built_is_refused_at_its_field(
    tmp_path: Path, context: Path, *, path: str, dockerfile: str, pointer: str, message: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    place = path if stored_code(path) else tmp_path / path
    with pytest.raises(InvalidInput, match=message) as refused:
        stored(tmp_path, spec_of(place, dockerfile))
    assert refused.value.problems[0].pointer == pointer
