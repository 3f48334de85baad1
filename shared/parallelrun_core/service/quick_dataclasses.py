"""Dataclasses whose methods share code: `dataclasses` compiles a text for each method of each class.

A service has a hundred to two hundred of them, many of them of libraries. All methods but `__init__` have the same few
forms, and compiling them anew was half of what a class takes: 8 % of the CPU of a trivial job from nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, Final

_Fields = Sequence["dataclasses.Field[Any]"]
_Method = Callable[..., object]
_COMPARISON: Final = "_cmp_fn"
_SELF: Final = "self."


@contextmanager
def shared_methods() -> Iterator[None]:
    """Let the dataclasses that are made in this block, by any thread, share the code of their methods.

    Python 3.13 compiles one text for each class, and is left as it is, like any whose private functions are others.
    """
    private = vars(dataclasses)
    compiling = {name: private[name] for name in _PARAMETERS if name in private}
    if {name: _parameters(function) for name, function in compiling.items()} == _PARAMETERS:
        private.update(_SHARING)
        private[_COMPARISON] = partial(_comparison, compiling[_COMPARISON])
    try:
        yield
    finally:
        private.update(compiling)


def _parameters(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return tuple(code.co_varnames[: code.co_argcount]) if code else ()


def _values_of(names: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    """Return what makes a tuple of these attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _comparison(
    compiling: Callable[..., _Method], name: str, sign: str, of_self: str, of_other: str, **options: object
) -> _Method:
    """Return the method that compares in this way, with texts such as `(self.a,self.b,)` of what is compared."""
    if sign != "==":
        return compiling(name, sign, of_self, of_other, **options)
    values = _values_of([word.removeprefix(_SELF) for word in of_self[1:-1].split(",") if word])

    def __eq__(self: object, other: object) -> object:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(fields: _Fields, *_: object) -> _Method:
    values = _values_of([field.name for field in fields])

    def __hash__(self: object) -> int:
        return hash(values(self))

    return __hash__


def _repr(fields: _Fields, *_: object) -> _Method:
    names = [field.name for field in fields]

    def __repr__(self: object) -> str:
        words = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({words})"

    return recursive_repr()(__repr__)


def _frozen(cls: Any, fields: _Fields, *_: object) -> tuple[_Method, _Method]:
    names = frozenset(field.name for field in fields)

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


_SHARING: Final = {"_frozen_get_del_attr": _frozen, "_hash_fn": _hash, "_repr_fn": _repr}
"""The functions of `dataclasses` that make other methods, and what does it in their place."""
_PARAMETERS: Final = {
    "_frozen_get_del_attr": ("cls", "fields", "globals"),
    "_hash_fn": ("fields", "globals"),
    "_repr_fn": ("fields", "globals"),
    _COMPARISON: ("name", "op", "self_tuple", "other_tuple", "globals"),
}
"""Those functions, with the parameters that they have in Python 3.11 and 3.12."""
