"""Our own form of a job: the fields of `JobSpec`, as docs/job-spec.md has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import note_image, read_conda_file
from parallelrun_core.azure.findings import Findings, Location


def read_own(document: Mapping[str, Any], location: Location, findings: Findings) -> Draft:
    """A job spec, with the content of the file that its environment names."""
    draft = Draft(dict(document), default=location.pointer)
    environment = document.get("environment")
    if isinstance(environment, dict):
        if isinstance(environment.get("conda_file"), str):
            where = location.below("environment", "conda_file")
            inlined = read_conda_file(environment["conda_file"], where, findings)
            draft.fields["environment"] = {**environment, "conda_file": inlined}
        if environment.get("image"):
            note_image(location.at("environment", "image"), findings)
    return draft
