"""Names of assets: the forms that a document may write, and what readers of documents ask for.

azureml:NAME:VERSION    azureml:NAME@LABEL    azureml:NAME    (the same as azureml:NAME@latest)
azureml:/subscriptions/…/workspaces/W/<types>/NAME/versions/VERSION          and without `azureml:`
azureml://…/workspaces/W/<types>/NAME/versions/VERSION
azureml://registries/R/<types>/NAME/versions/VERSION                         or /labels/LABEL
azureml://jobs/JOB/outputs/OUTPUT                                            or /paths/PATH in it
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final, NamedTuple, Protocol, Self

import msgspec

from parallelrun_core.errors import NotFound, Problem

CODE: Final = "code"
"""The kind that only jobs name, by what they bring along; people have no commands for it."""
INCLUDES: Final = "additional_includes"
"""The field of files and folders that are put beside those of the code."""
STORED_ALREADY: Final = (
    "nothing can be put beside the files of code that is stored under a name",
    "give the folder of the code, or put these files into it before it is stored",
)
"""What is said of such files for code of that kind, and what to do."""
LATEST: Final = "latest"
"""The label of the version that was created last and is not archived."""
MODEL_TYPES: Final = ("custom_model", "mlflow_model", "triton_model")

_KINDS: Final = Path(__file__).parents[1] / "assets" / "kinds"
"""The package with a module for each kind, which this one must not import."""
_STORED_CODE: Final = "azureml:code/"
_SNAPSHOT: Final = re.compile(_STORED_CODE + r"[0-9a-f]{64}")
_SHORT: Final = re.compile(r"azureml:([^:@/\s]+)(?::([^:@/\s]+)|@([^:@/\s]+))?", re.IGNORECASE)
_JOB_OUTPUT: Final = re.compile(
    r"azureml:/{0,2}(?:subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/)?"
    r"jobs/(?P<job>[^/\s]+)/outputs/(?P<output>[^/\s]+)(?:/paths(?P<rest>/.*))?/?",
    re.IGNORECASE,
)
_LONG: Final = (
    r"(?:azureml:)?/{0,2}(?:subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/"
    r"|locations/[^/]+/workspaces/[^/]+/|registries/(?P<registry>[^/]+)/)"
    r"(?P<type>{sections})/(?P<name>[^/\s]+)"
    r"(?:/(?:versions/(?P<version>[^/\s]+)|labels/(?P<label>[^/\s]+)))?/?"
)
"""With `{sections}` in place of the kinds' names."""


class JobOutput(NamedTuple):
    """An output of a job, as a document names it."""

    job: str
    output: str
    rest: str
    """The path in the output; empty: all of it."""

    def within(self, place: str) -> str:
        """Return the reference to what is in the output at this place."""
        return f"{place.rstrip('/')}/{self.rest}" if self.rest else place


class Reference(NamedTuple):
    """The name of an asset, as somebody has written it."""

    text: str
    type: str
    """Empty if the text doesn't say."""
    name: str
    version: str = ""
    """Empty if a label says which."""
    label: str = ""
    registry: str = ""
    """The registry of Azure ML, which only the site file knows."""


class Asset(msgspec.Struct, kw_only=True, frozen=True):
    type: str
    name: str
    version: str
    content: dict[str, Any]
    """The content by type, which never changes; see `definition.py`. Its `path` is where the content is."""
    created: float = 0.0
    """Epoch seconds."""
    owner: str = ""
    """The person who made it; empty: nobody in particular."""
    description: str = ""
    tags: dict[str, str] = {}
    properties: dict[str, str] = {}
    is_archived: bool = False

    @property
    def id(self) -> str:
        """Return how a document names it."""
        return f"azureml:{self.name}:{self.version}"


class UnknownAsset(NotFound, code="unknown_asset"):
    """No asset has this name."""

    @classmethod
    def called(cls, text: str, message: str, hint: str) -> Self:
        """The error for what a user has written."""
        return cls(problems=(Problem(pointer="", message=f"{text!r}: {message}", hint=hint),))


class UnknownVersion(UnknownAsset, code="unknown_version"):
    """The asset has no such version or label."""


class Names(Protocol):
    """The source of what names in documents stand for."""

    def asset(self, kind: str, text: str) -> Asset:
        """The asset of this type that a text names. The `path` of its content is where it is now, if it has files;
        that of code may also be its name, for whoever accepts the job.

        Raises:
            UnknownAsset: there is none; says what there is.
            InvalidInput: the text is no name.
            ConnectionFailed, OSError: nobody can be asked.
        """
        ...

    def place(self, text: str, *, is_output: bool = False) -> str:
        """The location that stands for another one here; mostly the same.

        Args:
            is_output: a job is to write there, where no uploads are.
        """
        ...


@cache
def kinds() -> tuple[str, ...]:
    """All kinds of assets, as users write them, in order."""
    return tuple(sorted(module.name for module in iter_modules([str(_KINDS)])))


def section_of(kind: str) -> str:
    """The name of a kind in long forms, and where many are listed."""
    return kind if kind == "data" else f"{kind}s"


@cache
def _long_form() -> tuple[re.Pattern[str], dict[str, str]]:
    """The pattern of long forms, and the kinds by their names in these."""
    sections = {section_of(kind): kind for kind in kinds()}
    return re.compile(_LONG.replace("{sections}", "|".join(sections)), re.IGNORECASE), sections


def job_output_in(text: str) -> JobOutput | None:
    """The output of a job that a text names; None if it names none."""
    match = _JOB_OUTPUT.fullmatch(text)
    return JobOutput(match["job"], match["output"], (match["rest"] or "").strip("/")) if match else None


def reference_of(text: str) -> Reference | None:
    """The name of an asset that a text is; None if it is none."""
    pattern, sections = _long_form()
    if long := pattern.fullmatch(text):
        kind = sections[long["type"].lower()]
        version, label = long["version"] or "", long["label"] or ""
        return Reference(
            text, kind, long["name"], version, label or ("" if version else LATEST), long["registry"] or ""
        )
    if short := _SHORT.fullmatch(text):
        name, version, label = short[1], short[2] or "", short[3] or ""
        return Reference(text, "", name, version, label or ("" if version else LATEST))
    return None


def stored_code(text: str) -> str:
    """The name of the snapshot that a job's `code` is, for whoever accepts the job; empty if it is a folder."""
    return text[len(_STORED_CODE) :] if _SNAPSHOT.fullmatch(text) else ""


def code_called(snapshot: str) -> str:
    """Return what a job's `code` is for a snapshot that whoever accepts the job has stored already."""
    return _STORED_CODE + snapshot
