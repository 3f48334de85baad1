"""HTML and SVG that can't be anything but what is meant: all text and all values of attributes are escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias


class Markup(str):
    """Text that is markup already. Only `element` and `raw` make it."""

    __slots__ = ()


Child: TypeAlias = "Markup | str | int | float | Iterable[Child] | None"

_VOID = frozenset({"meta", "rect", "path", "line", "br"})


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """Return one element. In names of attributes, `_` stands for a hyphen, dropped at the end; None leaves one out."""
    words = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = name.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{_escaped(_number(value))}"')
    start = " ".join(words)
    if tag in _VOID and not children:
        return Markup(f"<{start}>" if tag in ("meta", "br") else f"<{start}/>")
    return Markup(f"<{start}>{joined(children)}</{tag}>")


def joined(children: Iterable[Child]) -> Markup:
    """Join elements, one after the other."""
    return Markup("".join(map(_text_of, children)))


def raw(text: str) -> Markup:
    """Return what is markup because we have written it ourselves. Never for anything that somebody
    else has a say in.
    """
    return Markup(text)


def _text_of(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int | float):
        return _escaped(_number(child))
    return joined(child)


def _number(value: str | float) -> str:
    """A number as short as it can be without a visible difference."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    from parallelrun_core.untrusted.sanitize import visible

    # A file has no cursor to be moved, but marks of direction reorder what is read there, too.
    return html.escape(visible(text))
