"""Requirements: what an installer gets is what was read, on one line, and names no file and no option."""

from __future__ import annotations

from packaging.requirements import Requirement

from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec.conda import python_of, requirements_of, without_options
from parallelrun_core.spec.requirements import parse_requirement
from parallelrun_core.untrusted.document import load_document
from tests.fuzz.parser import FuzzedParser, check


def _read_line(data: bytes) -> None:
    _check_written(parse_requirement(data.decode()).text)


def _check_written(text: str) -> None:
    check(text.isascii() and text.isprintable(), f"{text!r} is not plain text")
    check(not text.startswith(("-", ".", "/")), f"{text!r} may be an option or a path")
    check(parse_requirement(text).text == text, f"{text!r} means something else the second time")
    requirement, _, hashes = text.partition(" --hash=")
    check(not any(word.startswith("-") for word in requirement.split()), f"{text!r} has an option")
    url = Requirement(requirement).url or "https://"
    check(url.startswith(("https://", "git+https://")), f"{text!r} is read from elsewhere")
    check(" " not in hashes.replace(" --hash=", ""), f"{text!r} has something behind its hashes")


def _read_conda(data: bytes) -> None:
    document = load_document(data)
    if not isinstance(document, dict):
        return
    environment, _ = without_options(document)
    python_of(environment)
    for line in requirements_of(environment):
        _check_written(line)


PARSERS = [
    FuzzedParser(
        "requirement",
        [
            b"six",
            b"six==1.16.0",
            b"a[b,c]>=1,<2; python_version < '3.12'",
            b"\xef\xbb\xbf-r other.txt",
            b"-e .",
            b"p @ https://example.com/p-1-py3-none-any.whl --hash=sha256:" + b"0" * 64,
            b"p @ git+https://example.com/p.git@" + b"0" * 40 + b"#egg=p&subdirectory=a/b",
            b"./p",
            b"file:///etc/passwd",
            b"p===1.0+local",
            b"p~=1.4.2  # why",
            b"p @ file:///p.whl",
            b"p==1.* --hash=sha256:" + b"a" * 64,
            b"p" + b" " * 19_000 + b">=1",
            b"p" + b" --hash x" * 2_000 + b" !",
        ],
        _read_line,
        (ValueError,),
    ),
    FuzzedParser(
        "conda",
        [
            b"name: x\ndependencies:\n- python=3.11\n- numpy=1.26\n"
            b"- conda-forge::pandas>=2,<3\n- pip:\n  - six\n  - --pre\n",
            b"dependencies: [pip, {pip: ['-r x', 'a\\', 'b']}]",
            b"dependencies: {}",
            b"dependencies:\n- pytorch==2.*\n",
        ],
        _read_conda,
        (ValueError, InvalidInput),
    ),
]
