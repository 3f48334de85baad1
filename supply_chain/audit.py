"""`python -m supply_chain.audit FILE…`: is anything that is locked in these files known to be vulnerable?

Asks vulnerability services through pip-audit, one after the other until one knows all packages of a file. pip-audit
itself skips a package that a service doesn't know and ends with success, so a mirror without that service's data would
make every audit green; here that is `UNKNOWN`.

Whoever makes a release can take a fix; so one that is there fails it. Where there is none yet, that is said. With
`--warn`, as in CI, a fix is no failure either: one that was found today must not fail a commit that was fine yesterday.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from supply_chain import CLEAN, UNKNOWN, WARNED, WRONG
from supply_chain.allowed import Allowed, is_allowed, read_allowed

SERVICES: Final = ("pypi", "osv")
ALLOWED_FILE: Final = Path(__file__).parents[1] / "requirements" / "allowed-vulnerabilities.toml"
_LONGEST_S: Final = 600


@dataclass(frozen=True)
class Vulnerability:
    """One that is known of a locked version."""

    package: str
    names: tuple[str, ...]
    """Its id and its other names."""
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        fix = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "not fixed yet"
        return f"{self.package}: {' = '.join(self.names)}, {fix}"


@dataclass(frozen=True)
class Answer:
    """What a service says of a file."""

    vulnerabilities: tuple[Vulnerability, ...] = ()
    asked: int = 0
    unknown: tuple[str, ...] = ()
    """Packages of which it knows nothing."""
    trouble: str = ""
    """Why it said nothing at all."""

    @property
    def is_whole(self) -> bool:
        """Whether it is about every package."""
        return not self.trouble and self.asked > 0 and not self.unknown


def read_answer(text: str) -> Answer:
    """What pip-audit has printed as JSON.

    Raises:
        ValueError: that is something else.
    """
    try:
        dependencies = json.loads(text)["dependencies"]
        return Answer(
            vulnerabilities=tuple(
                Vulnerability(
                    f"{each['name']} {each['version']}", (found["id"], *found["aliases"]), tuple(found["fix_versions"])
                )
                for each in dependencies
                for found in ([] if "skip_reason" in each else each["vulns"])
            ),
            asked=len(dependencies),
            unknown=tuple(each["name"] for each in dependencies if "skip_reason" in each),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not what pip-audit prints as JSON: {error!r}") from error


def ask(service: str, file: str, *options: str) -> Answer:
    """Ask one service about the packages of one file."""
    command = [
        sys.executable, "-m", "pip_audit", "--vulnerability-service", service, "--requirement", file,
        "--require-hashes", "--disable-pip", "--format", "json", "--desc", "off", "--aliases", "on",
        "--progress-spinner", "off", *options,
    ]  # fmt: skip
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
        return read_answer(ended.stdout)
    except subprocess.TimeoutExpired:
        return Answer(trouble=f"no answer within {_LONGEST_S} s")
    except ValueError:
        return Answer(trouble=(ended.stderr.strip().splitlines() or ["it printed nothing"])[-1])


def audit(
    files: Iterable[str],
    ask: Callable[[str, str], Answer],
    allowed: list[Allowed],
    today: date,
    say: Callable[[str], object],
    *,
    only_warns: bool = False,
) -> int:
    """Ask about all files, and say what was found; returns the exit code.

    Args:
        only_warns: nothing that was found is a failure.
    """
    codes = [_audit(file, ask, allowed, today, say) for file in files]
    worst = next((code for code in (WRONG, UNKNOWN) if code in codes), CLEAN)
    return WARNED if worst == WRONG and only_warns else worst


def _audit(
    file: str, ask: Callable[[str, str], Answer], allowed: list[Allowed], today: date, say: Callable[[str], object]
) -> int:
    vulnerable, troubles = set[Vulnerability](), list[str]()
    for service in SERVICES:
        answer = ask(service, file)
        vulnerable.update(each for each in answer.vulnerabilities if not is_allowed(each.names, allowed, today))
        if answer.is_whole:
            break
        troubles.append(f"{service}: {answer.trouble or _which(answer)}")
    for each in sorted(map(str, vulnerable)):
        say(f"audit: {file}: {each}")
    if any(each.fixed_in for each in vulnerable):
        return WRONG
    if len(troubles) == len(SERVICES):
        say(f"audit: {file}: NOT AUDITED, no service knows all of it; {'; '.join(troubles)}")
        return UNKNOWN
    trouble = "for which there is a fix " if vulnerable else ""
    say(f"audit: {file}: {answer.asked} packages, none known to be vulnerable {trouble}({service})")
    return CLEAN


def _which(answer: Answer) -> str:
    some = ", ".join(answer.unknown[:3]) + (", …" if len(answer.unknown) > 3 else "")
    return f"knows nothing of {len(answer.unknown)} of {answer.asked} packages ({some})"


def main(argv: list[str] | None = None) -> int:
    """Audit files; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m supply_chain.audit", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("files", nargs="+", help="locked requirements files")
    parser.add_argument("--osv-url", help="where the OSV service is, if not at its own address")
    parser.add_argument("--warn", action="store_true", help=f"exit with {WARNED} where a release would fail")
    given = parser.parse_args(argv)
    more = {"osv": ["--osv-url", given.osv_url]} if given.osv_url else {}
    return audit(
        given.files,
        lambda service, file: ask(service, file, *more.get(service, [])),
        read_allowed(ALLOWED_FILE),
        datetime.now(UTC).date(),
        print,
        only_warns=given.warn,
    )


if __name__ == "__main__":
    raise SystemExit(main())
