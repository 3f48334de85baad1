"""The environment and the flags of a command, where an operator says settings.

The field `lease_seconds` of a model is the variable `PREFIX_LEASE_SECONDS` and the flag `--lease-seconds`. Their values
are texts, of which the model makes what it wants.

Every service reads its settings when it starts, by argparse alone: a library for this took 6 to 20 ms and 1 MB more.
"""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

from pydantic import SecretStr

from parallelrun_core.described import descriptions

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

_METAVARS: Final = {
    str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH", SecretStr: "SECRET", bool: "true|false",
}  # fmt: skip


def read_variables(model: type[BaseModel], prefix: str) -> dict[str, str]:
    """Return what the environment says of the fields of a model, whose names may be in upper or lower case there."""
    variables = {name.upper(): text for name, text in os.environ.items()}
    names = {name: f"{prefix}{name}".upper() for name in model.model_fields}
    return {name: variables[variable] for name, variable in names.items() if variable in variables}


def read_flags(model: type[BaseModel], argv: Sequence[str]) -> dict[str, Any]:
    """Return what the words of a command line say of the fields of a model; `--help` prints what they are.

    Raises:
        SystemExit: help was printed, or a flag has no value or is none of the model's.
    """
    is_help = not {"-h", "--help"}.isdisjoint(argv)
    texts = descriptions(model) if is_help else {}
    parser = ArgumentParser(description=model.__doc__, argument_default=SUPPRESS, allow_abbrev=False)
    for name, field in model.model_fields.items():
        help_text = f"{texts.get(name, '')} ({_default(field)})" if is_help else None
        parser.add_argument(f"--{name.replace('_', '-')}", help=help_text, **_options(field.annotation))
    return vars(parser.parse_args(argv))


def _options(kind: Any) -> dict[str, Any]:
    """Return how a flag takes its value."""
    if kind is bool:
        return {"action": BooleanOptionalAction}
    if get_origin(kind) is Literal:
        return {"metavar": f"{{{','.join(get_args(kind))}}}"}
    return {"metavar": next(word for each, word in _METAVARS.items() if each in (kind, *get_args(kind)))}


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "default: that of this machine"
    return "not set" if field.default is None else f"default: {field.default}"
