"""A command's text with something in place of its expressions, in such a way that the shell reads what was meant.

What is put there depends on what is open around an expression: quotes, substitutions, a here-document, arithmetic. A
mistake about that can split a path into words. The shell can't run what is in a path, as that is part of the text only
if no character of it means anything to a shell. What other programs make of a longer text, as awk or ssh, nobody knows:
there, a path is refused that has characters which can mean something in a program.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from itertools import takewhile
from typing import Final, NamedTuple

from parallelrun_core.spec.expressions import own_reference

_EXPRESSION: Final = r"\$\{\{.{0,999}?\}\}"
_NESTED: Final = r"\\.|\$\(\(|\$\(|\$\{|`"
_HERE_DOCUMENT: Final = r"<<<|<<-?[ \t]*(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|<>()])+"
_OUTSIDE: Final = (
    rf"{_EXPRESSION}|\$'|\$\[|{_NESTED}|['\"\n)]|\(\(|\(|(?<![^\s;&|()])#[^\n]*|{_HERE_DOCUMENT}"
    r"|(?<![\w$./-])case(?!\S)"
)
_WITHIN: Final = {
    "'": rf"{_EXPRESSION}|'",
    "$'": rf"{_EXPRESSION}|\\.|'",
    '"': rf"{_EXPRESSION}|{_NESTED}|\"",
    "${": rf"{_EXPRESSION}|{_NESTED}|['\"}}]",
}
_QUOTES: Final = {"'": "'", '"': '"', "$'": "'"}
"""What ends each of them."""
_INTERPRETER: Final = re.compile(r"(?:.*/)?(?:\w*sh|python[\d.]*|perl|ruby|node|php|lua[\d.]*|su|Rscript)")
_PROGRAM_FOLLOWS: Final = re.compile(r"-\w*[ce]")
_READERS: Final = frozenset(
    {
        "eval", "trap", "alias", "let", "declare", "typeset", "local", "[[", "ssh", "watch", "make", "gmake",
    }
)  # fmt: skip
"""Programs that read their arguments as programs, or as arithmetic, which runs what is in subscripts."""
_CODE: Final = re.compile(r"[^\w@%+=:,./~ -]")
_LOOK_BACK: Final = 300
_SUBSCRIPT: Final = re.compile(r"\w\[[^\]\s]*$")
_HINT: Final = 'outside of all of that, say x=${{…}}, and use "$x" there; or give it a path of plain characters'


class Variable(NamedTuple):
    """An environment variable whose value an expression becomes, as one word or a part of one."""

    name: str
    is_path: bool = False
    """Then it is refused where its value would be read as a program, or as something else than a word."""
    may_be_code: bool = False
    """True for a path with characters that mean something in a program: it is no part of a longer text, either."""


def path_or_variable(path: str, variable: str, suffix: str = "") -> str | Variable:
    """A path if no character of it means anything to a shell, and otherwise the variable that has it.

    Args:
        suffix: what is known of a path before a node has made it; by default, all of it.
    """
    if _is_plain(path + suffix):
        return path
    decides = suffix or path
    return Variable(variable, is_path=not _is_plain(decides), may_be_code=_CODE.search(decides) is not None)


def _is_plain(path: str) -> bool:
    return shlex.quote(f"/{path}") == f"/{path}"


def with_values(text: str, value_of: Callable[[str, str], str | Variable]) -> str:
    """The text of a command with what its expressions become.

    Args:
        value_of: from `inputs`, `outputs` or `secrets` and a name to what it becomes: text that means the same in all
            quotes, or a variable. Raises ValueError if there is none.

    Raises:
        ValueError: an expression can't be resolved, or is a path in a place where it can't be one word.
    """
    return _Words(text).filled(value_of)


class _Words:
    """Reads the text once, from its begin to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._done: list[str] = []
        self._before = ""
        """The last of what is done."""
        self._open: list[str] = []
        """What has begun and not ended: `((` is arithmetic, once for each of its brackets, and with `<<` before it,
        something is the end of a here-document."""
        self._programs: list[int] = []
        """How much was open before each quoted program."""
        self._documents: list[str] = []
        """The here-documents that begin after this line."""
        self._is_lost = False
        """Whether it isn't known any more what is open."""

    def filled(self, value_of: Callable[[str, str], str | Variable]) -> str:
        at = 0
        while token := re.compile(self._tokens(), re.DOTALL).search(self._text, at):
            self._add(self._text[at : token.start()])
            word, at = token[0], token.end()
            if word.startswith("${{"):
                value = value_of(*own_reference(word[3:-2]))
                self._add(value if isinstance(value, str) else self._reference(token, value))
            else:
                self._read(word)
                self._add(word)
        return "".join([*self._done, self._text[at:]])

    def _add(self, text: str) -> None:
        self._done.append(text)
        self._before = (self._before + text)[-_LOOK_BACK:]

    def _tokens(self) -> str:
        kind = self._open[-1] if self._open else ""
        if kind.startswith("<<"):
            return rf"{_EXPRESSION}|{kind[2:]}"
        return _WITHIN.get(kind, _OUTSIDE)

    def _read(self, word: str) -> None:
        """Take note of what begins or ends here."""
        kind = self._open[-1] if self._open else ""
        if kind.startswith("<<"):
            self._open.pop()
        elif word == _QUOTES.get(kind) or (kind == "${" and word == "}"):
            self._close()
        elif word == "`" and word in self._open:  # whatever is open within
            while self._close() != word:
                pass
        elif word in ("'", '"', "$'", "`", "$(", "(", "${"):
            self._is_lost |= kind == "${" and word == "'"  # which may be a character there
            if self._is_program():
                self._programs.append(len(self._open))
            self._open.append(word)
        elif word in ("$((", "(("):
            self._open += ["((", "(("]
        elif word == ")" and kind in ("$(", "(", "(("):
            self._close()
        elif word in ("$[", "case"):  # old arithmetic; brackets that only end
            self._is_lost |= word == "$[" or bool(self._open)
        elif word.startswith("<<") and word != "<<<" and "((" not in self._open:
            self._documents.append(word)
        if word == "\n" and self._documents:
            self._open += map(_end_of, reversed(self._documents))
            self._documents = []

    def _close(self) -> str:
        kind = self._open.pop()
        self._programs = [each for each in self._programs if each < len(self._open)]
        return kind

    def _reference(self, token: re.Match[str], variable: Variable) -> str:
        """A variable, in quotes that fit to what is open."""
        kind = self._open[-1] if self._open else ""
        where = self._refusing_place() if variable.is_path else ""
        if not where and variable.may_be_code and self._is_part_of_text(token):
            where = "within a longer text in quotes, which may be a program"
        if where:
            subject = f"the path of {token[0]} has characters that a shell doesn't take as they are"
            raise ValueError(f"{subject}, and can't stand {where}: {_HINT}")
        if kind == '"' or kind.startswith("<<"):
            return f"${{{variable.name}}}"
        quoted = f'"${{{variable.name}}}"'
        return f"{_QUOTES[kind]}{quoted}{kind}" if kind in _QUOTES else quoted

    def _is_part_of_text(self, token: re.Match[str]) -> bool:
        """Return whether more than a part of a path is around an expression, in the same quotes or beside them."""
        before, after = self._text[: token.start()], self._text[token.end() :]
        if quote := _QUOTES.get(self._open[-1] if self._open else ""):
            before, _, head = before.rpartition(quote)
            tail, _, after = after.partition(quote)
            if before.endswith("\\") or not _is_plain(re.sub(_EXPRESSION, "", head + tail)):
                return True
        return before.endswith(("'", '"')) or after.startswith(("'", '"'))

    def _is_program(self) -> bool:
        """Return whether the argument that begins or goes on here is read as a program."""
        command = re.split(r"[\n;&|()]", self._before.replace("\\\n", " "))[-1]
        words = [word.replace('"', "").replace("'", "") for word in command.split()]
        if words and not command[-1].isspace():
            words.pop()
        if not _READERS.isdisjoint(word.rpartition("/")[2] for word in words):
            return True
        flags = [*takewhile(lambda word: word.startswith("-"), reversed(words))]
        return any(map(_PROGRAM_FOLLOWS.fullmatch, flags)) and any(map(_INTERPRETER.fullmatch, words[: -len(flags)]))

    def _refusing_place(self) -> str:
        if any(each.startswith("<<") for each in self._open):
            return "in a here-document"
        if "((" in self._open or _SUBSCRIPT.search(self._before):
            return "in arithmetic or a subscript"
        if "${" in self._open:
            return "within ${…}"
        if self._programs or self._is_program():
            return "in an argument that is a program itself, as after -c or eval"
        return "after `case` in brackets, $[…], or a quote within ${…}" if self._is_lost else ""


def _end_of(begin: str) -> str:
    """A pattern of what ends a here-document."""
    is_indented = begin.startswith("<<-")
    end = re.escape(re.sub(r"['\"\\]", "", begin[3 if is_indented else 2 :].lstrip()))
    return "<<(?m:^)" + "\\t*" * is_indented + end + "(?m:$)"
