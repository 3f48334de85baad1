"""Nodes that are batch jobs of a Slurm cluster, one job for each."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StrictInt, StrictStr, field_validator, model_validator

from parallelrun_core.computes import definition
from parallelrun_core.service.secret_sources import checked_place

LEAVES_BEFORE_S: Final = 120
"""A node whose time is limited is told to leave so long before its end: Slurm may do that up to a minute earlier."""
_LEAST_WALLTIME_S: Final = 300

_NAMES: Final = r"^[A-Za-z0-9_.:@+-]+(,[A-Za-z0-9_.:@+-]+)*$"
_CONSTRAINT: Final = r"^[A-Za-z0-9_.:&|*()\[\],=+-]+$"
_FOLDER: Final = r"^/[^\x00-\x1f\x7f]*$"
_SECRETS: Final = r"^([A-Za-z][A-Za-z0-9+.-]*:/)?/[^\x00-\x1f\x7f]*$"
_PYTHON: Final = r"^/([^\x00-\x1f\x7f]*/)?python[0-9.]*$"
_FILE: Final = "/[A-Za-z0-9%/._+~-]*"
_REDIS: Final = (
    r"^(rediss?://([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?(/[0-9]{1,5})?"
    rf"(\?ssl_ca_certs={_FILE}(&ssl_certfile={_FILE}&ssl_keyfile={_FILE})?)?"
    r"|unix:///[A-Za-z0-9%/._+~-]*(\?db=[0-9]{1,5})?)?$"
)
"""No user, no password, and nothing that would make an encrypted connection a less safe one."""
_WALLTIME: Final = re.compile(
    r"(?:(?P<days>[0-9]+)-(?P<hours>[0-9]+)(?::(?P<minutes>[0-9]+)(?::(?P<seconds>[0-9]+))?)?"
    r"|(?P<h>[0-9]+):(?P<m>[0-9]+):(?P<s>[0-9]+)|(?P<only>[0-9]+)(?::(?P<more>[0-9]+))?)"
)
_AS_PATTERN: Final = f"^({re.sub('[?]P<[a-z]+>', '', _WALLTIME.pattern)})?$"
OPTIONS: Final = frozenset({
    "contiguous", "core-spec", "cores-per-socket", "cpu-freq", "delay-boot", "exclude", "exclusive",
    "extra-node-info", "gpu-bind", "gpu-freq", "hint", "licenses", "mem-bind", "network", "nice", "nodelist",
    "oversubscribe", "prefer", "priority", "reservation", "sockets-per-node", "switches", "thread-spec",
    "threads-per-core", "tmp", "tres-bind", "use-min-nodes", "wckey",
})  # fmt: skip
"""Of `sbatch`; none that names a file, runs a program, sends mail, or decides what is decided here."""
_VALUE: Final = re.compile(r"[A-Za-z0-9_.:,;@+=*%&|()\[\]<>!~-]{0,512}")
"""No `/`: Slurm would read the nodes to use, or not to use, from the file of that name."""

Option = StrictInt | Literal[True] | Annotated[StrictStr, Field(json_schema_extra={"pattern": f"^{_VALUE.pattern}$"})]


class SlurmCompute(definition.Compute):
    """Each node is an agent in a batch job. Slurm's own words for the fields are in the manual page of `sbatch`."""

    type: Literal["slurm"]
    partition: str = Field(default="", max_length=256, pattern=f"{_NAMES}|^$", examples=["main"])
    """Slurm's default partition when not set."""
    low_priority_partition: str = Field(default="", max_length=256, pattern=f"{_NAMES}|^$", examples=["spot"])
    """The partition of the tier low_priority: its jobs may be preempted."""
    account: str = Field(default="", max_length=256, pattern=f"{_NAMES}|^$")
    qos: str = Field(default="", max_length=256, pattern=f"{_NAMES}|^$")
    walltime: str = Field(
        default="", max_length=32, examples=["12:00:00", "2-00:00:00"], json_schema_extra={"pattern": _AS_PATTERN}
    )
    """The most time that a node is there, as Slurm writes it; the partition's when not set. One that is still needed
    is replaced."""
    gpu_type: str = Field(default="", max_length=64, pattern=r"^[A-Za-z0-9_.-]*$", examples=["a100"])
    constraint: str = Field(default="", max_length=512, pattern=f"{_CONSTRAINT}|^$")
    """Features that a node must have."""
    options: dict[str, Option] = Field(
        default_factory=dict,
        examples=[{"exclude": "n[7-9]"}],
        json_schema_extra={"propertyNames": {"enum": [*sorted(OPTIONS)]}},
    )
    """Other options of `sbatch` by their long names, without `--`; `true` for one without a value."""
    python: str = Field(default="", max_length=4096, pattern=f"{_PYTHON}|^$", examples=["/home/me/pr/bin/python3.11"])
    """The interpreter that runs the agent on a node, with ParallelRun installed; the provisioner's own path when not
    set."""
    work_dir: str = Field(default="", max_length=4096, pattern=f"{_FOLDER}|^$")
    """A folder of a node's own disk, below which its workers' folders are; that for temporary files when not set."""
    cache_dir: str = Field(default="", max_length=4096, pattern=f"{_FOLDER}|^$")
    """A folder for the environments of jobs; in the user's home when not set."""
    secrets_dir: str = Field(default="", max_length=4096, pattern=f"{_SECRETS}|^$")
    """The folder with the secrets of jobs and datastores, as nodes see it, or the URL of another source of them."""
    redis_url: str = Field(default="", max_length=1024, pattern=_REDIS, examples=["rediss://login:6380/0"])
    """Redis as nodes reach it, without a password; as the provisioner does when not set."""

    _is_of_a_source = field_validator("secrets_dir")(checked_place)

    @field_validator("walltime")
    @classmethod
    def _is_long_enough(cls, value: str) -> str:
        if value and walltime_s(value) < _LEAST_WALLTIME_S:
            raise ValueError("must be at least 5 minutes: a node leaves two minutes before its end")
        return value

    @field_validator("options")
    @classmethod
    def _are_known(cls, value: dict[str, Option]) -> dict[str, Option]:
        for name, option in value.items():
            if name not in OPTIONS:
                raise ValueError(f"{name[:50]!r} is not one of {', '.join(sorted(OPTIONS))}")
            if not _VALUE.fullmatch(str(option)):
                raise ValueError(f"the value of {name!r} must be at most 512 letters, digits and signs, and no file")
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
