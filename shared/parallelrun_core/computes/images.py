"""The image that a job asks for: the name of one that there is, or a Dockerfile of which one is built.

Only a compute whose engine can give nodes of any image has such nodes, and only some of these build them. Submission
leaves both out of the jobs of all others, so whoever looks for work compares two names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from parallelrun_core.names.assets import stored_code
from parallelrun_core.names.computes import NOTE as NAME_NOTE
from parallelrun_core.names.computes import BuiltImage

OWN_PYTHON: Final = "the workers run in the Python of their node"
NOTE: Final = f"no container is created for a job: {OWN_PYTHON}, or one built from conda_file"
"""What is said of an image, as long as it isn't known whether the job's compute has nodes of images."""
BUILD_NOTE: Final = (
    f"no image is built for a job: {OWN_PYTHON}, or one built from conda_file; a compute of type docker builds one"
)
"""The same of a Dockerfile."""
CONDITIONAL: Final = frozenset({NAME_NOTE, NOTE, BUILD_NOTE})
"""What readers of documents say while nobody knows better: whether it is true depends on the computes of the server."""


def image_of(spec: Mapping[str, Any]) -> str:
    """The image of the nodes that a job runs on, by the spec that is recorded of it; empty: that of its compute."""
    environment = spec.get("environment")
    if not spec.get("compute") or not isinstance(environment, Mapping):
        return ""
    build = environment.get("build")
    if isinstance(build, Mapping) and (snapshot := stored_code(str(build["path"]))):
        return BuiltImage(snapshot, str(build["dockerfile_path"])).name
    return str(environment.get("image") or "")


def has_image(spec: Mapping[str, Any]) -> bool:
    """Return whether a job, or a step of a pipeline, runs on nodes of an image that it names, or describes."""
    steps = spec.get("steps")
    return bool(image_of(spec)) or (
        isinstance(steps, Mapping) and any(has_image(step["job"]) for step in steps.values())
    )
