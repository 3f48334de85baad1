"""YAML whose cost is bounded by its length: what somebody else wrote is read in seconds, or refused.

A few hundred bytes of YAML can stand for billions of values, by aliases within aliases or by merges within merges, and
numbers of base 60 take quadratic time. So values are counted as if each alias were written out, nesting has a limit,
and numbers are those of YAML 1.2, in which `1:30` is a text and `1e-05` a number (https://yaml.org/spec/1.2.2/#103-core-schema).
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError
from yaml.events import AliasEvent

MAX_VALUES: Final = 150_000
"""Keys, values, lists and mappings of a document, aliases written out. Each file of a list takes three, and 1 MiB has
room for about 50,000."""
MAX_DEPTH: Final = 100
_MAX_DIGITS: Final = 4_000
"""Python converts more decimal digits only on request, because that takes quadratic time."""

_MOST_REPEATED: Final = 20

_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_TEXT: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
_DECIMAL: Final = re.compile(r"[-+]?[0-9][0-9_]*")
_PREFIXED: Final = re.compile(r"[-+]?0(?:o[0-7]+|x[0-9a-fA-F]+|b[01]+)")
_REAL: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_HALF: Final = re.compile("[\ud800-\udfff]")


class BoundedLoader(yaml.SafeLoader):
    """Creates plain objects only, and refuses what stands for too much.

    Notes also keys that are given twice, in `repeated`: of each, the first is dropped. What `<<` merges in may be
    overridden. Keys are texts: that of `0: a` is `"0"`, and that of `on: a` is `"on"`.

    Joins the halves in which JSON writes a character beyond U+FFFF, such as an emoji; PyYAML leaves them apart.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._values = 0
        self._depth = 0
        self._merged = 0
        self.repeated: list[ComposerError] = []
        """Keys that are given twice, up to some."""
        self._values_of: dict[str, int | None] = {}
        """Of each anchor: how many values it stands for; None while it is being read."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        anchor, mark = event.anchor, event.start_mark
        if isinstance(event, AliasEvent):
            values = self._values_of.get(anchor, 1)
            if values is None:
                raise ComposerError(None, None, f"the alias {anchor!r} contains itself", mark)
            self._count(values, mark)
            return super().compose_node(parent, index)
        self._count(1, mark)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ComposerError(None, None, f"nested more than {MAX_DEPTH} levels deep", mark)
        before = self._values - 1
        if anchor is not None:
            self._values_of[anchor] = None
        node = super().compose_node(parent, index)
        if anchor is not None:
            self._values_of[anchor] = self._values - before
        self._depth -= 1
        return node

    def _count(self, values: int, mark: yaml.Mark) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise ComposerError(None, None, f"more than {MAX_VALUES:,} values, aliases written out", mark)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        node.value = [(_as_text(key), value) for key, value in node.value]
        first_marks: dict[tuple[str, str], yaml.Mark] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            first = first_marks.setdefault((key.tag, key.value), key.start_mark)
            if first is not key.start_mark and len(self.repeated) < _MOST_REPEATED:
                why = f"the key {key.value!r} is given twice, first on line {first.line + 1}"
                self.repeated.append(ComposerError(None, None, why, key.start_mark))
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace `<<` by what it merges in: at most as many values as a document may have."""
        super().flatten_mapping(node)
        last_of = {
            (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key): (key, value)
            for key, value in node.value
        }
        node.value = list(last_of.values())  # or each level of merges would repeat all keys of the one below
        self._merged += len(node.value)
        if self._merged > MAX_VALUES:
            raise ConstructorError(None, None, f"more than {MAX_VALUES:,} values, merges written out", node.start_mark)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        text: str = super().construct_scalar(node)
        if not _HALF.search(text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise ConstructorError(None, None, "half of a character, without the other half", node.start_mark) from None

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        """A whole number of YAML 1.2.

        Raises:
            ConstructorError: it isn't one, or has thousands of digits.
        """
        text = self.construct_scalar(node)
        if len(text) <= _MAX_DIGITS:
            if _DECIMAL.fullmatch(text):
                return int(text.replace("_", ""))
            if _PREFIXED.fullmatch(text):
                return int(text, 0)
        raise ConstructorError(None, None, f"{text[:40]!r} is not a whole number", node.start_mark)

    def construct_real(self, node: yaml.ScalarNode) -> float:
        """A number of YAML 1.2 with a fraction or an exponent.

        Raises:
            ConstructorError: it isn't one.
        """
        text = self.construct_scalar(node)
        if _SPECIAL.fullmatch(text):
            return float(text.replace(".", "").lower())
        if _REAL.fullmatch(text):
            return float(text.replace("_", ""))
        raise ConstructorError(None, None, f"{text[:40]!r} is not a number", node.start_mark)


def _as_text(key: yaml.Node) -> yaml.Node:
    """Return a key as a text: keys are names, also those that look like a number or a date, and those of JSON are
    texts, too."""
    if not isinstance(key, yaml.ScalarNode) or key.tag in (_TEXT, _MERGE):
        return key
    return yaml.ScalarNode(_TEXT, key.value, key.start_mark, key.end_mark, key.style)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return the resolvers of YAML 1.1 but for numbers: by first character, the tags of a plain scalar and their
    patterns."""
    of_others = {
        first: [(tag, pattern) for tag, pattern in entries if tag not in (_INT, _FLOAT)]
        for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    whole = re.compile(rf"(?:{_DECIMAL.pattern}|{_PREFIXED.pattern})$")
    real = re.compile(rf"(?:{_SPECIAL.pattern}|{_REAL.pattern})$")
    for first in "-+.0123456789":
        of_others.setdefault(first, [])[:0] = [(_INT, whole), (_FLOAT, real)]
    return of_others


BoundedLoader.yaml_implicit_resolvers = _resolvers()
BoundedLoader.add_constructor(_INT, BoundedLoader.construct_integer)
BoundedLoader.add_constructor(_FLOAT, BoundedLoader.construct_real)
