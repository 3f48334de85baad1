"""Defaults of reading data for each form of document: put into the job spec when it is read.

From then on nothing asks which form a job came in. A spec of an earlier release lacks these fields, and keeps what its
jobs had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.job import JobSpec

OWN: Final[Mapping[str, str]] = {"hidden_files": "skip", "litter_files": "skip"}
AZURE: Final[Mapping[str, str]] = {"hidden_files": "skip", "litter_files": "warn"}
"""A list of files has every file there (reference §4.1), so nothing is left out of one."""
LEFTOVERS: Final = tuple(OWN)
"""Fields of an input."""


def with_data_defaults(spec: JobSpec, defaults: Mapping[str, str]) -> JobSpec:
    """Return the spec with these values in the fields of its inputs that are empty, as far as the job cuts them.

    An MLTable file is a document of Azure ML wherever it is named.
    """
    inputs = {name: _complete(data_input, defaults) for name, data_input in spec.data_inputs()}
    return spec.model_copy(update={"inputs": {**spec.inputs, **inputs}}) if inputs else spec


def _complete(data_input: Input, defaults: Mapping[str, str]) -> Input:
    defaults = AZURE if data_input.type == "mltable" else defaults
    missing = {name: value for name, value in defaults.items() if not getattr(data_input, name)}
    return data_input.model_copy(update=missing) if missing else data_input
