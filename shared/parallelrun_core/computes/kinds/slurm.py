"""Nodes that are batch jobs of a Slurm cluster, one job for each."""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from parallelrun_core.computes import definition

LEAVES_BEFORE_S: Final = 120
"""A node whose time is limited is told to leave so long before its end: Slurm may do that up to a minute earlier."""
_LEAST_WALLTIME_S: Final = 300

_NAMES: Final = r"^[A-Za-z0-9_.:@+-]+(,[A-Za-z0-9_.:@+-]+)*$"
_CONSTRAINT: Final = r"^[A-Za-z0-9_.:&|*()\[\],=+-]+$"
_FOLDER: Final = r"^/[^\x00-\x1f]*$"
_WALLTIME: Final = re.compile(
    r"(?:(?P<days>\d+)-(?P<hours>\d+)(?::(?P<minutes>\d+)(?::(?P<seconds>\d+))?)?"
    r"|(?P<h>\d+):(?P<m>\d+):(?P<s>\d+)|(?P<only>\d+)(?::(?P<more>\d+))?)"
)
OPTIONS: Final = frozenset({
    "contiguous", "core-spec", "cores-per-socket", "cpu-freq", "delay-boot", "exclude", "exclusive",
    "extra-node-info", "gpu-bind", "gpu-freq", "hint", "licenses", "mem-bind", "network", "nice", "nodelist",
    "oversubscribe", "prefer", "priority", "reservation", "sockets-per-node", "switches", "thread-spec",
    "threads-per-core", "tmp", "tres-bind", "use-min-nodes", "wckey",
})  # fmt: skip
"""Of `sbatch`; none that names a file, runs a program, sends mail, or decides what is decided here."""
_VALUE: Final = re.compile(r"[ -~]{0,512}")


class Compute(definition.Compute):
    """Each node is an agent in a batch job. Slurm's own words for the fields are in the manual page of `sbatch`."""

    type: Literal["slurm"]
    partition: str = Field(default="", max_length=256, pattern=f"{_NAMES}|^$", examples=["main"])
    """Slurm's default partition when not set."""
    low_priority_partition: str = Field(default="", max_length=256, pattern=f"{_NAMES}|^$", examples=["spot"])
    """The partition of the tier low_priority: its jobs may be preempted."""
    account: str = Field(default="", max_length=256, pattern=f"{_NAMES}|^$")
    qos: str = Field(default="", max_length=256, pattern=f"{_NAMES}|^$")
    walltime: str = Field(default="", max_length=32, examples=["12:00:00", "2-00:00:00"])
    """The most time that a node is there, as Slurm writes it; the partition's when not set. One that is still needed
    is replaced."""
    gpu_type: str = Field(default="", max_length=64, pattern=r"^[A-Za-z0-9_.-]*$", examples=["a100"])
    constraint: str = Field(default="", max_length=512, pattern=f"{_CONSTRAINT}|^$")
    """Features that a node must have."""
    options: dict[str, str | int | Literal[True]] = Field(default_factory=dict, examples=[{"exclude": "n[7-9]"}])
    """Other options of `sbatch` by their long names, without `--`; `true` for one without a value."""
    python: str = Field(default="", max_length=4096, pattern=f"{_FOLDER}|^$")
    """The interpreter that runs the agent on a node, with ParallelRun installed; the provisioner's own path when not
    set."""
    work_dir: str = Field(default="", max_length=4096, pattern=f"{_FOLDER}|^$")
    """A folder of a node's own disk, below which its workers' folders are; that for temporary files when not set."""
    cache_dir: str = Field(default="", max_length=4096, pattern=f"{_FOLDER}|^$")
    """A folder for the environments of jobs; in the user's home when not set."""
    secrets_dir: str = Field(default="", max_length=4096, pattern=f"{_FOLDER}|^$")
    """The folder with the secrets of jobs and datastores, as nodes see it."""
    redis_url: str = Field(default="", max_length=1024, pattern=r"^(rediss?|unix)://[^@\x00-\x20]*$|^$")
    """Redis as nodes reach it, without a password; as the provisioner does when not set."""

    @field_validator("walltime")
    @classmethod
    def _is_long_enough(cls, value: str) -> str:
        if value and walltime_s(value) < _LEAST_WALLTIME_S:
            raise ValueError("must be at least 5 minutes: a node leaves two minutes before its end")
        return value

    @field_validator("options")
    @classmethod
    def _are_known(cls, value: dict[str, str | int | Literal[True]]) -> dict[str, str | int | Literal[True]]:
        for name, given in value.items():
            if name not in OPTIONS:
                raise ValueError(f"{name[:50]!r} is not one of {', '.join(sorted(OPTIONS))}")
            if not _VALUE.fullmatch(str(given)):
                raise ValueError(f"the value of {name!r} must be at most 512 printable characters of ASCII")
        return value

    @model_validator(mode="after")
    def _has_a_partition(self) -> Self:
        if self.tier == "low_priority" and not self.low_priority_partition:
            raise ValueError("tier low_priority needs low_priority_partition, whose jobs may be preempted")
        if self.gpu_type and not self.gpus:
            raise ValueError("gpu_type needs gpus, their number")
        return self


def walltime_s(text: str) -> int:
    """Seconds, from what Slurm accepts: minutes, minutes:seconds, hours:minutes:seconds, or the same after `days-`.

    Raises:
        ValueError: it is none of these.
    """
    match = _WALLTIME.fullmatch(text)
    if match is None:
        raise ValueError("must be minutes, HH:MM:SS, or D-HH:MM:SS")
    part = {name: int(digits or 0) for name, digits in match.groupdict().items()}
    minutes = part["minutes"] + part["m"] + part["only"]
    hours = 24 * part["days"] + part["hours"] + part["h"]
    return 3600 * hours + 60 * minutes + part["seconds"] + part["s"] + part["more"]
