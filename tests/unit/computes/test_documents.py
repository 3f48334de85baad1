"""A document becomes the definition of a compute, as Azure ML's do, or is refused with the place of what is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.document import read_definition
from parallelrun_core.computes.kinds import kinds, model_of
from parallelrun_core.computes.launch import compute_of, launch_id
from parallelrun_core.computes.selection import Selection, computes_in
from parallelrun_core.documents.codecs import definition_fields
from parallelrun_core.errors import CorruptLog, InvalidInput, NotFound

LOCAL = {"name": "here", "type": "local", "max_instances": 3}


def test_azure_mls_own_documents_are_read_as_they_are() -> None:
    cluster = read_definition(
        {
            "$schema": "https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json",
            "name": "low-pri-example", "type": "amlcompute", "size": "STANDARD_DS3_v2", "location": "westus",
            "min_instances": 0, "max_instances": 2, "idle_time_before_scale_down": 120, "tier": "low_priority",
            "identity": {"type": "system_assigned"}, "network_settings": {"vnet_name": "v"},
        },
        main_kind="swarm",
    )  # fmt: skip
    assert definition_fields(cluster) == {
        "name": "low-pri-example", "type": "swarm", "size": "STANDARD_DS3_v2", "max_instances": 2,
        "tier": "low_priority",
    }  # fmt: skip
    manual = read_definition({"type": "AmlCompute", "kind": "manual", "tier": "LowPriority"}, name="cpus")
    assert isinstance(manual, model_of("manual"))
    assert manual.tier == "low_priority"


@pytest.mark.parametrize(
    "document, pointer",
    [
        ({**LOCAL, "type": None}, "/type"),
        ({**LOCAL, "type": "locale"}, "/type"),
        ({**LOCAL, "type": "amlcompute", "kind": "vm"}, "/kind"),
        ({**LOCAL, "type": "amlcompute"}, "/kind"),
        ({**LOCAL, "name": "-x"}, "/name"),
        ({**LOCAL, "name": "a" * 33}, "/name"),
        ({**LOCAL, "min_instances": 4}, ""),
        ({**LOCAL, "max_instances": 0}, "/max_instances"),
        ({**LOCAL, "password": "canary"}, "/password"),
        ({**LOCAL, "wheels": 4}, "/wheels"),
        ({**LOCAL, "gpus": False}, "/gpus"),
        ({**LOCAL, "idle_time_before_scale_down": False}, "/idle_time_before_scale_down"),
        ({**LOCAL, "slots": "2"}, "/slots"),
        ([], ""),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(document: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_definition(document)
    assert [problem.pointer for problem in refused.value.problems] == [pointer]
    assert "canary" not in str(refused.value)


def test_a_catalog_keeps_what_was_defined(tmp_path: Path) -> None:
    catalog = ComputeCatalog(tmp_path)
    assert catalog.names() == []
    assert catalog.define(read_definition(LOCAL))
    assert not catalog.define(read_definition({**LOCAL, "is_default": True}))
    assert catalog.get("here").max_instances == 3
    assert catalog.default() == "here"
    with pytest.raises(NotFound, match="did you mean 'here'"):
        catalog.get("her")
    (tmp_path / "computes" / "other.json").write_text('{"type": "future"}')
    with pytest.raises(CorruptLog, match="doesn't know"):
        catalog.get("other")
    catalog.remove("other")
    catalog.remove("here")
    with pytest.raises(NotFound, match="there is none yet"):
        catalog.remove("here")


def test_a_definition_that_a_script_has_put_there_is_none(tmp_path: Path) -> None:
    catalog = ComputeCatalog(tmp_path)
    catalog.define(read_definition({**LOCAL, "is_default": True}))
    text = (tmp_path / "computes" / "here.json").read_bytes()
    (tmp_path / "computes" / "a-copy.json").write_bytes(text)
    (tmp_path / "computes" / "a-link.json").symlink_to(tmp_path / "computes" / "here.json")
    os.mkfifo(tmp_path / "computes" / "a-pipe.json")
    (tmp_path / "computes" / "no name.json").write_bytes(text)
    assert catalog.names() == ["a-copy", "a-link", "a-pipe", "here"]
    for name, words in (("a-copy", "another compute, 'here'"), ("a-link", "a link"), ("a-pipe", "no file")):
        with pytest.raises(CorruptLog, match=words):
            catalog.get(name)
    assert catalog.default() == "here"
    (tmp_path / "computes" / "deleted").mkdir()
    (tmp_path / "computes" / "deleted" / "x.local.json").write_bytes(text)
    assert catalog.deleted() == []
    for name in ("a-copy", "a-link", "a-pipe"):
        catalog.remove(name)
    assert catalog.names() == ["here"]


def test_with_a_key_only_sealed_definitions_count(tmp_path: Path) -> None:
    api, provisioner, script = (
        ComputeCatalog(tmp_path, b"key"),
        ComputeCatalog(tmp_path, b"key"),
        ComputeCatalog(tmp_path),
    )
    api.define(read_definition({**LOCAL, "idle_time_before_scale_down": 0.1, "description": "für alle"}))
    assert provisioner.get("here") == api.get("here") == script.get("here")
    sealed = (tmp_path / "computes" / "here.json").read_text()
    for forged in (sealed.replace("3", "300"), sealed.replace("seal", "leaf"), "[]", '{"seal": null}'):
        (tmp_path / "computes" / "here.json").write_text(forged)
        with pytest.raises(CorruptLog, match="define it again"):
            provisioner.get("here")
    (tmp_path / "computes" / "here.json").write_text(sealed)
    script.define(read_definition({**LOCAL, "name": "theirs"}))
    with pytest.raises(CorruptLog, match="not defined through this cluster's API"):
        provisioner.get("theirs")
    script.remove("theirs")
    assert provisioner.deleted() == []
    api.remove("here")
    assert [each.name for each in provisioner.deleted()] == ["here"]


def test_the_nodes_of_another_engine_are_given_back_when_a_compute_is_defined_anew(tmp_path: Path) -> None:
    catalog = ComputeCatalog(tmp_path)
    local, slurm = read_definition(LOCAL), read_definition({"name": "here", "type": "slurm"})
    catalog.define(local)
    catalog.define(read_definition({**LOCAL, "slots": 7}))
    assert catalog.deleted() == []
    catalog.define(slurm)
    assert [each.kind for each in catalog.deleted()] == ["local"]
    catalog.remove("here")
    assert [each.kind for each in catalog.deleted()] == ["local", "slurm"]
    catalog.define(local)
    assert [each.kind for each in catalog.deleted()] == ["slurm"], "its nodes are those of the new one"
    catalog.forget_deleted(slurm)
    assert catalog.deleted() == []


def test_a_name_has_no_effect_until_a_compute_is_defined(tmp_path: Path) -> None:
    catalog = ComputeCatalog(tmp_path)
    for named in ("", "azureml:cpu-cluster", "local"):
        assert Selection(catalog).compute_of(named) == ""
    catalog.define(read_definition(LOCAL))
    assert Selection(catalog).compute_of("azureml:here") == "here"
    assert Selection(catalog).compute_of("") == Selection(catalog).compute_of("serverless") == ""
    with pytest.raises(InvalidInput, match="there are here") as refused:
        Selection(catalog).compute_of("azureml:cpu-cluster", "/jobs/score/compute")
    assert refused.value.problems[0].pointer == "/jobs/score/compute"
    catalog.define(read_definition({**LOCAL, "is_default": True}))
    assert Selection(catalog).compute_of("") == "here"


def test_a_pipeline_runs_where_its_steps_do() -> None:
    inner = {"type": "pipeline", "steps": {"x": {"type": "parallel", "job": {"compute": "b"}}}}
    steps = {"one": {"job": {"compute": "a"}}, "two": {"job": inner}, "three": {"job": {}}}
    assert computes_in({"type": "pipeline", "steps": steps}) == {"a", "b"}
    assert computes_in({"compute": "a"}) == {"a"}


def test_each_kind_has_its_name_as_its_type() -> None:
    for kind in kinds():
        assert model_of(kind)(name="x1", type=kind).model_dump()["type"] == kind  # type: ignore[call-arg]


def test_a_launch_says_which_compute_it_is_for() -> None:
    assert compute_of(launch_id("cpu-cluster", "0123456789ab")) == "cpu-cluster"
    assert compute_of("node-7") == ""
