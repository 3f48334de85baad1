"""The outputs of a job by the names that its client knows, and the files in them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from parallelrun_api.azure.facade import Facade
from parallelrun_api.views.files import ServedFolder
from parallelrun_core.azure.bindings import ARTIFACTS as ALL_ARTIFACTS
from parallelrun_core.errors import NotFound
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.layout import jobs_of
from parallelrun_core.pipelines.outputs import job_of_output, output_path
from parallelrun_core.spec.expressions import only_expression, reference, same_name
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule, resolve

ROWS: Final = "score"
"""What the service calls the output of a batch endpoint's job: here, that of each job with rows and no named output."""


def types_of(facade: Facade, job_id: str, name: str) -> dict[str, str]:
    """The outputs of a job with their types, as it is called by a client.

    Args:
        name: by which the client asks for it.
    """
    record = facade.context.jobs.folder(job_id).record()
    types = {
        key: str((each or {}).get("type") or "uri_folder") for key, each in (record.spec.get("outputs") or {}).items()
    }
    if _has_only_rows(record):
        return {ROWS: "uri_folder"}
    aliases = _aliases(facade, record, name)
    if aliases is None:
        return types
    return {alias: types[key] for alias, key in aliases.items()}


def served_output(facade: Facade, job_id: str, name: str, output: str) -> ServedFolder:
    """The folder with the files of an output; of an output that is a file, with only that.

    Raises:
        NotFound: there is no such output, it is not here, or it leads to where jobs may not write.
    """
    folder = facade.context.jobs.folder(job_id)
    record = folder.record()
    if output == ROWS and _has_only_rows(record):
        spec = record.job_spec()
        return _served(facade, folder.output_file(spec) if spec.output else str(folder.outputs))
    aliases = _aliases(facade, record, name)
    if aliases is not None:
        key = same_name(output, aliases)
        if key is None:
            raise NotFound(f"Job {name[:80]} has no output {output[:80]!r}.")
        output = aliases[key]
    return _served(facade, output_path(folder, output))


def output_place(facade: Facade, name: str, output: str) -> str:
    """The path or the URL of an output of a job, both as a client calls them.

    Raises:
        NotFound: there is no such job or output, or nobody has made it yet.
    """
    job_id = facade.names.job_id(name)
    folder = facade.context.jobs.folder(job_id)
    record = folder.record()
    if output == ROWS and _has_only_rows(record):
        return folder.output_file(record.job_spec())
    if is_all_artifacts(record, output):
        return str(folder.path)
    aliases = _aliases(facade, record, name) or {}
    return output_path(folder, aliases.get(same_name(output, aliases) or "", output))


def is_all_artifacts(record: JobRecord, output: str) -> bool:
    """Return whether a name stands for all artifacts of a job, which has no output called so: those that it has written
    to `outputs` are in its folder `outputs`."""
    return output == ALL_ARTIFACTS and not record.is_pipeline and same_name(output, record.job_spec().outputs) is None


def _has_only_rows(record: JobRecord) -> bool:
    """Return whether a job has no output with a name, but a file of rows."""
    if record.is_pipeline or record.spec.get("outputs"):
        return False
    return record.job_spec().writes_rows


def _served(facade: Facade, place: str) -> ServedFolder:
    if is_url(place):
        raise NotFound(f"The output is in an object store, at {place}.")
    path = Path(place)
    root, names = facade.context.settings.root, facade.context.folder_names
    try:
        is_file = stat.S_ISREG(os.lstat(path).st_mode)
    except OSError as error:
        raise NotFound("The output has not been written.") from error
    folder, only = (path.parent, path.name) if is_file else (path, "")
    if job_of_output(root, f"{path}/"):
        jobs = jobs_of(root)
        return ServedFolder(anchor=jobs, beneath=str(folder.relative_to(jobs)), only=only, names=names)
    rule = PathRule(root, facade.context.settings.places)
    real = resolve(os.fsencode(folder))
    if not rule.is_open(real, is_written=True) or (not only and rule.holds_closed(real)):
        raise NotFound("The output leads to where jobs may not write.")
    return ServedFolder(anchor=Path("/"), beneath=os.fsdecode(real).lstrip("/"), only=only, names=names)


def keys_by_name(sent: Mapping[str, Any], outputs: Mapping[str, Any], *, is_step: bool) -> dict[str, str]:
    """The outputs of a job that a pipeline of one parallel step has become, by the names that its client knows.

    They are called as those of the pipeline; as those of the step, where that has another output of such a name, and in
    jobs of earlier releases.

    Args:
        sent: the pipeline as its client has sent it.
        outputs: those of the job.
        is_step: by the names that they have in the step.
    """
    keys: dict[str, str] = {}
    for node in (sent.get("jobs") or {}).values():
        for of_step, text in _bindings(node):
            bound = reference(only_expression(text) or text)
            if bound is None or not bound.of_parent or bound.kind != "outputs":
                continue
            key = same_name(of_step, outputs) or same_name(bound.name, outputs)
            if key is not None:
                keys[of_step if is_step else bound.name] = key
    return {**{key: key for key in outputs if is_step and key not in keys.values()}, **keys}


def _aliases(facade: Facade, record: JobRecord, name: str) -> dict[str, str] | None:
    """Return the outputs of a job by the names that its client knows; None: these are their own.

    Args:
        name: by which the client asks for the job.
    """
    sent = facade.names.of(record.job_id).get("sent") or {}
    if record.is_pipeline or sent.get("jobType") != "Pipeline":
        return None
    return keys_by_name(sent, record.spec.get("outputs") or {}, is_step=name == record.job_id)


def _bindings(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The outputs of a step, with what each is bound to."""
    outputs = node.get("outputs")
    for key, binding in outputs.items() if isinstance(outputs, Mapping) else ():
        text = binding.get("value") if isinstance(binding, Mapping) else binding
        if isinstance(text, str):
            yield key, text
