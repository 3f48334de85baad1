"""What the proofs find when versions can be written over, names are looked up late, and outputs registered anew."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from parallelrun_core.assets import catalog, registering
from parallelrun_core.assets.catalog import Catalog, _Version
from parallelrun_core.documents import file_store
from parallelrun_core.errors import NotFound, ParallelRunError
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.pipeline import Step
from tests.twins.sabotage import always, expect_failure
from tests.unit.assets import test_catalog as versions
from tests.unit.assets import test_registering as outputs
from tests.unit.assets import test_resolving as names
from tests.unit.core import test_pipelines as steps


def test_a_version_that_can_be_written_over_is_found(tmp_path: Path) -> None:
    write = Catalog._write

    def write_anew(self: Catalog, kind: str, name: str, version: str, *args: Any) -> bool:
        with suppress(NotFound):
            self._versions_as(_Version, kind, name).remove(version)
        return write(self, kind, name, version, *args)

    with patch.object(Catalog, "_write", write_anew), expect_failure():
        versions.test_a_version_never_changes(tmp_path)


def test_names_that_are_looked_up_again_when_a_job_is_read_are_found(tmp_path: Path) -> None:
    known: Catalog = names.catalog.__wrapped__(tmp_path)  # type: ignore[attr-defined]
    read = names.read

    def late(document: dict[str, Any], *_: Any) -> JobSpec:
        spec = read(document, known)
        path = known.labelled("model", "credit", "stable").content["path"]
        model = dict(spec.input_paths())["model"].model_copy(update={"path": path})
        return spec.model_copy(update={"inputs": {**spec.inputs, "model": model}})

    with patch.object(names, "read", late), expect_failure():
        names.test_a_job_means_the_same_whatever_becomes_of_the_names(known)


def test_outputs_that_are_registered_anew_by_each_leader_are_found(tmp_path: Path) -> None:
    def chosen(there: Catalog, kind: str, name: str, *_: Any) -> str:
        return there.next_version(kind, name)

    with patch.object(registering, "_chosen", chosen), expect_failure():
        outputs.test_an_output_is_registered_once_however_often_a_leader_does_it(tmp_path)


def test_a_retry_that_writes_into_a_version_is_found(tmp_path: Path) -> None:
    with patch.object(Step, "makes_assets", False), expect_failure():
        steps.check_a_retry_leaves_assets_alone(tmp_path)


@pytest.mark.parametrize("name", ["a/b", ".."])
def test_names_that_nobody_checks_are_found(tmp_path: Path, name: str) -> None:
    def unchecked(text: str, _: str) -> str:
        return text

    with (
        patch.object(catalog, "checked_name", unchecked),
        patch.object(file_store, "_is_name", always(True)),
        expect_failure(),
    ):
        try:
            versions.test_no_name_leads_out_of_its_folder(tmp_path, name)
        except (OSError, ParallelRunError) as error:
            raise AssertionError from error
