"""Requirements as jobs name them: read once, and written anew from what was read.

Text that one program has checked and another one reads may mean two things: a byte order mark before `-r` is a part of
a name to one and nothing to the other. So a line is read by `packaging`, and what an installer gets is made of the
name, the extras, the versions, the marker and the hashes that were read. What has no place among these is refused:
local paths, `file:`, editable projects, other files, and all options but those that say where packages are, which are
fields of the environment (`index_option`).

`packaging` is imported where a requirement is read: most jobs have none, and its patterns take 15 ms in each process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_COMMENT: Final = re.compile(r"(?<!\S)#.*")
_BEFORE_HASH: Final = re.compile(r"(?<!\s)\s+--hash[= ]\s*")
_WORD_OF_MARKER: Final = r"[A-Za-z0-9._+~:/()][A-Za-z0-9._+*~:/(),-]*"
_MARKER: Final = re.compile(rf'(?:[a-z_<>=!~() ]|"(?:{_WORD_OF_MARKER}(?: {_WORD_OF_MARKER})*)?")*')
"""Names and operators, and quoted values, in the spelling of `packaging`."""
_DIGEST: Final = re.compile(r"(?:sha256[:=][0-9a-f]{64}|sha384[:=][0-9a-f]{96}|sha512[:=][0-9a-f]{128})")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_HOST: Final = re.compile(rf"(?=.{{1,253}}(?::|$)){_NAME.pattern}(?:\.{_NAME.pattern})*(?::[0-9]{{1,5}})?")
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~%+@=,!&-]*)*")
_QUERY: Final = re.compile(r"[A-Za-z0-9._~%+@=,!&/-]*")
_SUBFOLDER: Final = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_EGG: Final = re.compile(r"[A-Za-z0-9._-]+(?:\[[A-Za-z0-9._,-]*\])?")
_GIT: Final = "git+"
_URL: Final = re.compile(r"https://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?")
_USER: Final = re.compile(r"://[^/\s]*@|://[^/\s:]*:(?!\d+/[^\s@]{0,200}@[0-9a-f]{40}(?!\w))[^\s@]*@")
"""Of a URL, and its password, which may have a slash in it: a port has one too, before a repository and its commit."""
_ESCAPED: Final = re.compile(r"%(?:2[ef5]|5c|00)", re.IGNORECASE)
"""What leads elsewhere once it is read: dots, slashes, and what is escaped twice."""
_OPTION: Final = re.compile(r"(--[a-z0-9-]+|-[a-z])[\s=]*(.*)", re.DOTALL)
INDEX_OPTIONS: Final = {
    "--index-url": "index_url", "-i": "index_url", "--extra-index-url": "extra_index_urls",
    "--find-links": "find_links", "-f": "find_links", "--pre": "prereleases",
}  # fmt: skip
"""Options of a requirements file, and the fields of an environment that stand for them."""
VARIABLE: Final = re.compile(r"\$\{\w+\}")
"""What installers replace by the value of an environment variable, which may be a password."""
_NO_FILES: Final = "a folder or file can't be installed on a node; put its modules below code"
_ARCHIVES: Final = (".whl", ".zip", ".gz", ".bz2")
_MAX_LENGTH: Final = 65_536
"""Of a line; one with the hashes of a hundred wheels has 8,000 characters."""


@dataclass(frozen=True, slots=True)
class ParsedRequirement:
    """A requirement that means the same to whoever reads it."""

    text: str
    """A line of a requirements file, made of what was read."""
    url: str = ""
    """The URL of the package itself, when the requirement has one."""
    is_locked: bool = False
    """Its content is known by a hash of its file; that of a commit is none."""


def parse_requirement(line: object) -> ParsedRequirement:
    """Read a line of a requirements file that names a package.

    Raises:
        ValueError: it names none, or something that a node must not read or run; the text says what to write.
    """
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    text, *hashes = _BEFORE_HASH.split(_plain(line))
    digests = [_digest(each) for each in hashes]
    if text.startswith("-"):
        raise ValueError(f"{text!r}: {_why_no_option(text)}")
    try:
        parsed = Requirement(_named(text))
    except (InvalidRequirement, RecursionError) as error:
        raise ValueError(f"{text!r} is not a requirement: {_why_not(text, error)}") from error
    if parsed.name.lower().endswith(_ARCHIVES):
        raise ValueError(f"{text!r} is not a requirement: {_NO_FILES}")
    for name in (parsed.name, *parsed.extras):
        if not _NAME.fullmatch(canonicalize_name(name)):
            raise ValueError(f"{text!r} is not a requirement: {name!r} is not the name of a package")
    for each in parsed.specifier:
        _check_version(text, each.operator, each.version)
    _check_marker(text, parsed)
    url = _package_url(parsed.url, digests) if parsed.url else ""
    return ParsedRequirement(_written(parsed, url, digests), url, bool(digests) or "#sha" in url)


def requirement_lines(lines: Iterable[object]) -> Iterator[object]:
    """Lines of a requirements file, but comments and blank ones; one that ends with a backslash goes on in the next."""
    begun = ""
    for line in lines:
        if not isinstance(line, str):
            yield line
            continue
        text = _COMMENT.sub("", line).rstrip()
        if text.endswith("\\"):
            begun += text[:-1] + " "
        elif begun or text:
            yield begun + text
            begun = ""
    if begun:
        yield begun


def index_option(line: object) -> tuple[str, str] | None:
    """The field of an environment that a line of `requirement_lines` stands for, and its value; None: it is no option
    about indexes, or one that `parse_requirement` refuses, as its value is none."""
    option = _OPTION.match(line.strip()) if isinstance(line, str) else None
    field = INDEX_OPTIONS.get(option[1]) if option else None
    if option is None or field is None:
        return None
    expected_words = 0 if field == "prereleases" else 1
    return (field, option[2]) if len(option[2].split()) == expected_words else None


def checked_index_url(value: str) -> str:
    """The URL of an index of packages, or of a page with links to them.

    Raises:
        ValueError: it is none, or not one with https.
    """
    check_no_user(value)
    return _https(value)


def host_of(url: str) -> str:
    """The host of the URL of a requirement or an index, with its port if it has one."""
    parts = _URL.fullmatch(url.removeprefix(_GIT))
    return parts[1] if parts else ""


def _plain(line: object) -> str:
    """A line without its comment.

    Raises:
        ValueError: it is no text, or has a character that no requirement has.
    """
    if not isinstance(line, str):
        raise ValueError(f"a requirement is a text, and not of type {type(line).__name__}")
    check_no_user(line)
    if len(line) > _MAX_LENGTH:
        raise ValueError(f"{line[:80]!r}… is not a requirement: it has more than {_MAX_LENGTH:,} characters")
    strange = next((char for char in line.strip(" \t\r\n") if not 32 <= ord(char) < 127 and char != "\t"), "")
    text = _COMMENT.sub("", line).strip()
    if strange or not text:
        why = f": it has the character U+{ord(strange):04X}" if strange else ""
        raise ValueError(f"{line!r} is not a requirement{why}")
    if bad := next((char for char in "$\\`" if char in text), ""):
        why = "no variable of a node is put into it, so it has none" if bad == "$" else f"it has {bad!r}"
        raise ValueError(f"{line!r} is not a requirement: {why}")
    return text


def check_no_user(text: str) -> None:
    """Refuse a text that has a URL with a user or a password. To be called before an error repeats the text.

    Raises:
        ValueError: it has one; without the text, as either may be a secret.
    """
    if "ssh://" in text:
        raise ValueError("a URL with ssh, for which nodes have no key; write NAME @ git+https://HOST/PATH@COMMIT")
    for word in text.split():
        end = word.rfind("@") + len("@") + 41  # of a commit; without a last '@', each start would look for one
        if _USER.search(word[:end]):
            raise ValueError(
                "a URL with a user or password, or a port and no commit of 40 digits; put a password into the node's "
                "own configuration of pip or uv"
            )


def _why_no_option(text: str) -> str:
    match = _OPTION.match(text)
    option, value = match.groups() if match else ("", "")
    if option in INDEX_OPTIONS:
        return "this option has a line of its own, with one URL (--pre: with nothing)"
    if option in ("-e", "--editable"):
        return "write it without -e" if value.startswith(_GIT) else _NO_FILES
    if option in ("-r", "--requirement", "-c", "--constraint"):
        return "other files can't be read on a node; name the packages themselves"
    return "remove this option; how packages are installed is in the node's own configuration of pip or uv"


def _why_not(text: str, error: Exception) -> str:
    """Return what to write instead of a text, where it can be told, and otherwise what `packaging` says of it."""
    if text.startswith((".", "/", "~", "file:")) or re.search(r"@\s*(file:|[./~])", text):
        return _NO_FILES
    if " -" in text:
        return "an option has a line of its own"
    if "://" in text:
        return "write NAME @ https://HOST/PATH#sha256=… or NAME @ git+https://HOST/PATH@COMMIT"
    return f"{str(error).splitlines()[0]}; write it as in six>=1.16,<2"


def _named(text: str) -> str:
    """A URL by itself with the name of the package before it, where the URL says it."""
    if not text.startswith(("https:", _GIT)):
        return text
    url, _, marker = text.partition(" ;")
    path, _, fragment = url.partition("#")
    egg = re.search(rf"(?:^|&)egg=({_EGG.pattern})(?:&|$)", fragment)
    name = egg[1] if egg else ""
    if not name and url.startswith("https:"):
        from packaging.utils import parse_sdist_filename, parse_wheel_filename

        file = path.partition("?")[0].rpartition("/")[2]
        try:
            name = parse_wheel_filename(file)[0] if file.endswith(".whl") else parse_sdist_filename(file)[0]
        except ValueError:
            return text
    return f"{name} @ {url}" + (f" ;{marker}" if marker else "")


def _check_version(text: str, operator: str, version: str) -> None:
    """Refuse what is no version behind `===`, which compares any text: an installer may take it for something else."""
    if operator == "===":
        from packaging.version import InvalidVersion, Version

        try:
            Version(version)
        except InvalidVersion as error:
            raise ValueError(f"{text!r}: {version!r} is not a version") from error


def _check_marker(text: str, requirement: Requirement) -> None:
    """Refuse a marker's value in which an installer may see its end, or, behind a blank, an option."""
    if requirement.marker and not _MARKER.fullmatch(str(requirement.marker)):
        raise ValueError(f"{text!r}: a value of its marker has a character, or begins a word, as none does")


def _digest(text: str) -> str:
    """A hash as requirements have it, `sha256:…`.

    Raises:
        ValueError: it is of another kind or length.
    """
    if not _DIGEST.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is not a hash such as sha256:… with 64 digits")
    return text.replace("=", ":", 1)


def _https(url: str) -> str:
    """A URL with https, made of its parts; what is behind a `#` is left out.

    Raises:
        ValueError: it has a part that it must not have.
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError(f"{url!r} must begin with https://")
    host, path, query = parts[1].lower(), parts[2], parts[3] or ""
    is_good = _HOST.fullmatch(host) and _PATH.fullmatch(path) and _QUERY.fullmatch(query)
    if not is_good or {".", ".."} & {*path.split("/")} or _ESCAPED.search(path):
        raise ValueError(f"{url!r} is not a URL of a package or an index")
    return f"https://{host}{path}" + (f"?{query}" if query else "")


def _package_url(url: str, digests: list[str]) -> str:
    """The URL of a package whose content can't change.

    Raises:
        ValueError: it can, or the URL is of a kind that nodes don't read.
    """
    if not url.startswith(("https:", f"{_GIT}https:")):
        is_file = url.startswith(("file:", "/", "."))
        raise ValueError(f"{url!r}: {_NO_FILES if is_file else 'only https and git+https are read on nodes'}")
    fragment = dict(pair.partition("=")[::2] for pair in url.partition("#")[2].split("&") if pair)
    below = fragment.pop("subdirectory", "")
    if below and (not _SUBFOLDER.fullmatch(below) or ".." in below.split("/")):
        raise ValueError(f"{below!r} is not a folder below the files of a package")
    egg = fragment.pop("egg", "")
    if not all(key.startswith("sha") for key in fragment) or (egg and not _EGG.fullmatch(egg)):
        raise ValueError(f"{url!r}: only a hash of SHA-2, egg=NAME[EXTRAS] and subdirectory=PATH are read behind #")
    if url.startswith(_GIT):
        if digests:
            raise ValueError(f"{url!r} names a commit, and so has no hash")
        plain = _https(url.removeprefix(_GIT).partition("#")[0])
        repository, _, commit = plain.rpartition("@")
        if not repository or "?" in plain or not _COMMIT.fullmatch(commit):  # installers read it in the path alone
            raise ValueError(f"{url!r} must name a commit by its 40 digits, as in git+https://HOST/PATH@COMMIT")
        return f"{_GIT}{plain}" + (f"#subdirectory={below}" if below else "")
    in_url = (_digest(f"{name}:{value}") for name, value in fragment.items() if name.startswith("sha"))
    if len(hashes := {*in_url, *digests}) != 1:
        raise ValueError(f"{url!r} must name one hash of the file, as in https://HOST/PATH#sha256=…")
    plain = _https(url.partition("#")[0])
    return f"{plain}#{hashes.pop().replace(':', '=', 1)}" + (f"&subdirectory={below}" if below else "")


def _written(requirement: Requirement, url: str, digests: list[str]) -> str:
    """A line of a requirements file. The name is in the form in which none looks like that of a file."""
    from packaging.utils import canonicalize_name

    extras = f"[{','.join(sorted({*map(canonicalize_name, requirement.extras)}))}]" if requirement.extras else ""
    where = f" @ {url}" if url else str(requirement.specifier)
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    hashes = "" if url else "".join(f" --hash={digest}" for digest in digests)
    return f"{canonicalize_name(requirement.name)}{extras}{where}{marker}{hashes}"
