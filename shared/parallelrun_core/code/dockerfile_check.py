"""The check of Dockerfiles: what the Engine fetches itself, from the network of its machine.

`ADD` names no URL; `FROM` and `COPY --from` name no image that can't be told, that is at an address of a cloud's own
services or by an id, or that was built here for a job. Which other images there may be is up to who builds.

Which lines are one depends on the escape character, and on the release of the builder. So a Dockerfile is read in each
of these ways, and refused if it is wrong in any. Where here-documents end depends on words with quotes and escapes: if
there may be any, each line is read as one with which an instruction begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address
from itertools import product
from socket import inet_aton
from typing import Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.untrusted.addresses import Reach, address_in, reach_of

_ADD: Final = re.compile(r"(?:ONBUILD\s+)*ADD\s+(.*)", re.IGNORECASE | re.DOTALL)
_POINTER: Final = "/environment/build/dockerfile_path"
_MAX_BYTES: Final = 1 << 20
_MOST_LINES: Final = 20_000
_ADD_AHEAD: Final = re.compile(r" ?(?:ONBUILD )*ADD ", re.IGNORECASE)
_MOST_AHEAD: Final = 100
"""Characters that decide whether an instruction is `ADD`, runs of blanks as one."""
_MOST_BEGINNING: Final = 2000
"""Characters of an instruction that decide which image it names."""
_NAMING: Final = re.compile(r"(?:ONBUILD\s+)*(FROM|COPY|RUN)\s+(.*)", re.IGNORECASE | re.DOTALL)
_FLAG: Final = re.compile(r"\s*(--\S*)")
_ARG: Final = re.compile(r"ARG\s+(.*)", re.IGNORECASE | re.DOTALL)
_ARGUMENT: Final = re.compile(r"""(\w+)(?:=("[^"$\\`]*"|'[^'$\\`]*'|[^\s"'$\\`]*))?(?:\s+|$)""")
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_SIGNS: Final = re.compile(r"""["'\\`]""")
"""Signs that a builder may take away."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:/@\[\]-]+")
_NO_IMAGE: Final = "scratch"
_NUMBER: Final = re.compile(r"\d{1,3}")
_ID: Final = re.compile(r"(?:sha256:)?[0-9a-fA-F]+")
_VERSION: Final = re.compile(r"[:@].*")
_OF_MACHINES: Final = frozenset({"metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"})
_INNER_DOMAINS: Final = frozenset({"internal", "local", "lan", "home", "corp", "intranet", "private"})
BUILT_HERE: Final = "parallelrun-built"
"""What images are called that are built of jobs' Dockerfiles."""


def check_dockerfile(content: bytes, name: str) -> frozenset[str]:
    """Make sure that a Dockerfile has nothing fetched from the network of the Engine's machine but images.

    Returns:
        The images that it builds on or copies from, by name.

    Raises:
        InvalidInput: it has, what it adds or builds on can't be told or isn't for jobs, a step has a flag that the
            builder doesn't know, or it has more than 1 MiB or 20,000 lines.
    """
    if len(content) > _MAX_BYTES:
        raise InvalidInput.at(_POINTER, f"{name} has more than {_MAX_BYTES >> 20} MiB")
    text = content.decode(errors="replace").lstrip("\ufeff")
    if text.count("\n") > _MOST_LINES:
        raise InvalidInput.at(_POINTER, f"{name} has more than {_MOST_LINES:,} lines")
    images: set[str] = set()
    for escape, is_doubled in product(("\\\\", "`"), (True, False)):
        end = re.compile(rf"{escape}[ \t]*$" if is_doubled else rf"(?<!{escape}){escape}[ \t]*$")
        for instruction in _instructions(text, end):
            added = _ADD.fullmatch(instruction)
            if added and _may_be_url(added[1]):
                raise _refusal(name, instruction)
        images |= _images(_instructions(text, end), name)
        if text.count("<") > 1:
            if line := _adding_line(text, end):
                raise _refusal(name, line)
            images |= _images(_beginnings(text, end), name)
    return frozenset(images)


def _refusal(name: str, instruction: str) -> InvalidInput:
    return InvalidInput.at(
        _POINTER,
        f"{name}: {' '.join(instruction.split())[:200]!r} may name a URL, which the Engine would fetch",
        "fetch it with RUN, or put the file beside the Dockerfile and use COPY",
    )


def _images(instructions: Iterator[str], name: str) -> set[str]:
    """Return the images that instructions name, but for stages of the same Dockerfile.

    Raises:
        InvalidInput: one can't be told, or isn't for jobs.
    """
    values, stages, images = dict[str, str](), set[str](), set[str]()
    for instruction in instructions:
        if not stages and (argument := _ARG.fullmatch(instruction)):
            values = _with_arguments(values, argument[1])
        if (naming := _NAMING.fullmatch(instruction)) is None:
            continue
        verb, (flags, rest) = naming[1].upper(), _flags_of(naming[2])
        if verb == "RUN" and flags:
            raise _wrong(name, instruction, "has a flag that needs BuildKit, which doesn't build here", "leave it out")
        texts = [flag.partition("=")[2] for flag in flags if flag.startswith("--from")]
        if verb == "FROM":
            texts = [_VARIABLE.sub(partial(_value, values), text) for text in rest.split()[:1]]
        else:
            texts = [text for text in texts if not _NUMBER.fullmatch(text)]
        images |= {
            _checked_image(text, name, instruction) for text in texts if text.lower() not in (*stages, _NO_IMAGE)
        }
        if verb == "FROM":
            stages |= {"", *(word.lower() for word in rest.split()[2:3])}
    return images


def _value(values: Mapping[str, str], variable: re.Match[str]) -> str:
    return values.get(variable[1] or variable[2], variable[0])


def _checked_image(image: str, name: str, instruction: str) -> str:
    if not _PLAIN.fullmatch(image):
        hint = "write its name, or variables that an ARG before the first FROM has given a plain value"
        raise _wrong(name, instruction, "names an image that can't be told", hint)
    if reach_of_registry(image) is Reach.MACHINE:
        hint = "take it from a registry"
        raise _wrong(name, instruction, "names an image at an address that only machines have business with", hint)
    if _ID.fullmatch(image):
        raise _wrong(name, instruction, "may name an image of the Engine's machine by its id", f"{image[:50]}:latest")
    if _VERSION.sub("", image.rpartition("/")[2]) == BUILT_HERE:
        raise _wrong(name, instruction, "names an image that was built here for a job", "bring its Dockerfile")
    return image


def registry_host(image: str) -> str:
    """Return the host of an image's registry, without its port; empty: it is Docker Hub's."""
    first, slash, _ = image.partition("/")
    if not slash or not (any(sign in first for sign in ".:") or first.lower() == "localhost" or first != first.lower()):
        return ""
    host = first.lower().rpartition("@")[2]
    return (host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]).rstrip(".")


def reach_of_registry(image: str) -> Reach:
    """Return the kind of address of an image's registry, as far as its name tells: a host without a dot, or of a domain
    that no public server has, is an inner one."""
    if not (host := registry_host(image)):
        return Reach.PUBLIC
    try:
        return reach_of(address_in(host))
    except ValueError:
        pass
    with suppress(OSError):  # as resolvers read 127.1, 0x7f000001 and 2130706433
        return reach_of(IPv4Address(inet_aton(host)))
    if host in _OF_MACHINES:
        return Reach.MACHINE
    last = host.rpartition(".")[2]
    if last == "localhost":
        return Reach.LOOPBACK
    return Reach.INNER if last == host or last in _INNER_DOMAINS else Reach.PUBLIC


def _flags_of(text: str) -> tuple[list[str], str]:
    """Return the flags with which the arguments of an instruction begin, without quotes, and what comes after them."""
    flags, at = [], 0
    while flag := _FLAG.match(text, at):
        flags.append(_SIGNS.sub("", flag[1]))
        at = flag.end()
    return flags, text[at:]


def _with_arguments(values: dict[str, str], text: str) -> dict[str, str]:
    """Return the values of variables after one more `ARG`; none are known after one that can't be told."""
    more, at = dict[str, str](), 0
    while at < len(text):
        argument = _ARGUMENT.match(text, at)
        if argument is None:
            return {}
        more[argument[1]] = (argument[2] or "").strip("\"'")
        at = argument.end()
    return values | more


def _wrong(name: str, instruction: str, fault: str, hint: str) -> InvalidInput:
    return InvalidInput.at(_POINTER, f"{name}: {' '.join(instruction.split())[:200]!r} {fault}", hint)


def _beginnings(text: str, end: re.Pattern[str]) -> Iterator[str]:
    """The beginning of the instruction that each line would begin, in order."""
    beginnings, ahead = list[str](), ""
    for line in reversed(text.split("\n")):
        if not line.strip() or line.strip().startswith("#"):
            continue
        is_whole = not end.search(line.rstrip("\r"))
        ahead = (end.sub("", line.rstrip("\r")) + ("" if is_whole else ahead))[:_MOST_BEGINNING]
        beginnings.append(ahead.strip())
    return reversed(beginnings)


def _adding_line(text: str, end: re.Pattern[str]) -> str:
    """Return a line with which an `ADD` of a URL would begin, wherever instructions begin; empty if there is none."""
    ahead, plain_ahead, has_url = "", "", False
    for line in reversed(text.split("\n")):
        if not line.strip() or line.strip().startswith("#"):
            continue  # none begins with these, and one goes on after them
        body = end.sub("", line.rstrip("\r"))
        plain = body.replace('"', "").replace("'", "")
        if not end.search(line.rstrip("\r")):
            ahead, plain_ahead, has_url = "", "", False
        has_url = has_url or _may_be_url(body) or _may_be_url(plain[-4:] + plain_ahead[:4])
        ahead = re.sub(r"\s+", " ", body + ahead)[:_MOST_AHEAD]
        plain_ahead = (plain + plain_ahead)[:_MOST_AHEAD]
        if has_url and _ADD_AHEAD.match(ahead):
            return line
    return ""


def _may_be_url(arguments: str) -> bool:
    """Return whether a builder may read a URL in this: quotes vanish, and escapes and variables become anything."""
    plain = arguments.replace('"', "").replace("'", "")
    return "://" in plain or "git@" in plain or any(char in plain for char in "$\\`")


def _instructions(text: str, end: re.Pattern[str]) -> Iterator[str]:
    begun = ""
    for line in text.split("\n"):
        if line.strip().startswith("#") or (begun and not line.strip()):
            continue
        begun += end.sub("", line.rstrip("\r"))
        if not end.search(line.rstrip("\r")):
            yield begun.strip()
            begun = ""
    yield begun.strip()
