"""What comes from elsewhere is looked at, and what nobody answers is never taken for a yes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from supply_chain import CLEAN, UNKNOWN, WARNED, WRONG
from supply_chain.allowed import Allowed, read_allowed
from supply_chain.audit import ALLOWED_FILE, Answer, Vulnerability, ask, audit, read_answer
from supply_chain.images import FILES, images, lock
from supply_chain.locked import locked
from supply_chain.provenance import statement
from supply_chain.sbom import differences
from supply_chain.wheel import differences as differences_of_wheels

ROOT = Path(__file__).parents[2]
AUDIT_PYTHON = ROOT / ".environments" / "audit" / "bin" / "python"
SBOM = ROOT / "build" / "parallelrun.cdx.json"
TODAY = date(2030, 1, 15)
BAD = Vulnerability("bad 1.0", ("GHSA-1", "CVE-1"), ("1.1",))

needs_the_audit = pytest.mark.skipif(not AUDIT_PYTHON.exists(), reason="`make audit` has not been run here")


# The audit


def audited(
    answers: dict[str, Answer], allowed: tuple[Allowed, ...] = (), *, only_warns: bool = False
) -> tuple[int, str]:
    said = list[str]()
    code = audit(["file"], lambda service, _: answers[service], [*allowed], TODAY, said.append, only_warns=only_warns)
    return code, "\n".join(said)


def test_only_a_whole_answer_makes_a_file_clean() -> None:
    nothing = Answer(trouble="no such host")
    assert audited({"pypi": Answer(asked=3), "osv": nothing})[0] == CLEAN
    assert audited({"pypi": nothing, "osv": Answer(asked=3)})[0] == CLEAN
    assert audited({"pypi": Answer(asked=3, unknown=("a",)), "osv": Answer(asked=3)})[0] == CLEAN


@pytest.mark.parametrize(
    "answer",
    [
        Answer(trouble="no such host"),
        Answer(asked=3, unknown=("a", "b", "c")),
        Answer(asked=3, unknown=("a",)),
        Answer(),
    ],
)
def test_silence_is_no_yes(answer: Answer) -> None:
    code, said = audited({"pypi": answer, "osv": Answer(trouble="no such host")})
    assert code == UNKNOWN
    assert "NOT AUDITED" in said
    assert "no such host" in said


def test_what_is_vulnerable_is_wrong_whatever_else_is_unknown() -> None:
    for answer in (Answer((BAD,), asked=3), Answer((BAD,), asked=3, unknown=("a",))):
        code, said = audited({"pypi": answer, "osv": Answer(trouble="no such host")})
        assert code == WRONG
        assert "bad 1.0: GHSA-1 = CVE-1, fixed in 1.1" in said


def test_a_release_fails_by_what_has_a_fix_and_ci_by_nothing_that_was_found() -> None:
    unfixed = Vulnerability("worse 1.0", ("GHSA-2",), ())
    answers = {"pypi": Answer((unfixed,), asked=3)}
    code, lines = audited(answers)
    assert code == CLEAN
    assert "worse 1.0: GHSA-2, not fixed yet" in lines
    assert "for which there is a fix" in lines

    answers = {"pypi": Answer((unfixed, BAD), asked=3)}
    assert audited(answers)[0] == WRONG
    code, lines = audited(answers, only_warns=True)
    assert code == WARNED
    assert "bad 1.0: GHSA-1 = CVE-1, fixed in 1.1" in lines
    nobody = {"pypi": Answer(trouble="no such host"), "osv": Answer(trouble="no such host")}
    assert audited(nobody, only_warns=True)[0] == UNKNOWN


def test_ci_warns_of_what_was_found_and_fails_a_release() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert '[ "$PART" != all ] || warn=' in text
    assert "supply_chain.audit $warn " in text
    assert f'"$code" -eq {WARNED}' in text
    assert f'"$code" -eq {UNKNOWN}' in text


@pytest.mark.parametrize("name", ["GHSA-1", "CVE-1"])
def test_what_is_allowed_is_so_up_to_its_last_day(name: str) -> None:
    answers = {"pypi": Answer((BAD,), asked=3)}
    assert audited(answers, (Allowed(name, TODAY, "why"),))[0] == CLEAN
    assert audited(answers, (Allowed(name, date(2030, 1, 14), "why"),))[0] == WRONG
    assert audited(answers, (Allowed("CVE-2", TODAY, "why"),))[0] == WRONG


@pytest.mark.parametrize(
    "entry", ['id = "a"\nuntil = 2030-01-01', 'id = "a"\nreason = "b"', 'id = "a"\nuntil = 2030-01-01\nreason = " "']
)
def test_nothing_is_allowed_without_a_day_and_a_reason(entry: str, tmp_path: Path) -> None:
    (tmp_path / "allowed.toml").write_text(f"[[allowed]]\n{entry}\n")
    with pytest.raises(ValueError, match="needs id, until"):
        read_allowed(tmp_path / "allowed.toml")


def test_what_we_allow_can_be_read() -> None:
    assert isinstance(read_allowed(ALLOWED_FILE), list)


def test_what_pip_audit_prints_is_understood() -> None:
    printed = {
        "dependencies": [
            {"name": "good", "version": "1", "vulns": []},
            {"name": "gone", "skip_reason": "Dependency not found"},
            {
                "name": "bad",
                "version": "1.0",
                "vulns": [{"id": "GHSA-1", "fix_versions": ["1.1"], "aliases": ["CVE-1"]}],
            },
        ],
        "fixes": [],
    }
    assert read_answer(json.dumps(printed)) == Answer((BAD,), asked=3, unknown=("gone",))
    for text in ("", "[]", "{}", "null", '{"dependencies": [{}]}'):
        with pytest.raises(ValueError, match=r"JSON|Expecting value"):
            read_answer(text)


class Osv(BaseHTTPRequestHandler):
    """A vulnerability service that knows of one."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = [
            {
                "id": "GHSA-1",
                "aliases": ["CVE-1"],
                "affected": [],
                "summary": "bad",
                "published": "2030-01-01T00:00:00Z",
            }
        ]
        body = json.dumps({"vulns": known} if asked["package"]["name"] == "idna" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def osv() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Osv)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@needs_the_audit
def test_the_real_pip_audit_finds_what_a_service_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(AUDIT_PYTHON))
    file = tmp_path / "locked.txt"
    file.write_text(f"idna==3.0 --hash=sha256:{'0' * 64}\nsniffio==1.0 --hash=sha256:{'0' * 64}\n")
    with osv() as url:
        answer = ask("osv", str(file), "--osv-url", url)
    assert [(each.package, {*each.names}) for each in answer.vulnerabilities] == [("idna 3.0", {"GHSA-1", "CVE-1"})]
    assert answer.is_whole
    assert ask("osv", str(file), "--osv-url", url).trouble, "nobody answers there any more"


# The wheel


def test_a_wheel_is_the_same_bytes_whenever_and_wherever_it_is_built(tmp_path: Path) -> None:
    """Built here, and from a copy whose files are of another time; an epoch that somebody sets is kept to."""
    copy = tmp_path / "copy"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
            os.utime(copy / name, (1_000_000_000, 1_000_000_000))
    plain = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}

    here = built(ROOT, tmp_path / "here", plain)
    elsewhere = built(copy, tmp_path / "elsewhere", {**plain, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"})
    dated = built(copy, tmp_path / "dated", {**plain, "SOURCE_DATE_EPOCH": "1700000000"})

    assert differences_of_wheels(here, elsewhere) == []
    assert differences_of_wheels(here, dated) == ["the order, the times or the rights of the files"]


def built(source: Path, target: Path, environment: dict[str, str]) -> Path:
    """The wheel of a checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    [wheel] = target.glob("*.whl")
    return wheel


# The list of what is shipped


def test_a_list_that_is_not_what_is_locked_is_found(tmp_path: Path) -> None:
    file = tmp_path / "locked.txt"
    file.write_text(
        f"a==1 \\\n    --hash=sha256:{'0' * 64}\nb==2 ; sys_platform == 'win32' \\\n    --hash=sha256:{'1' * 64}\n"
    )
    whole = document({"a": ("1", "0" * 64), "b": ("2", "1" * 64)})
    assert differences(whole, file) == []
    assert differences(document({"a": ("1", "0" * 64)}), file) == ["b 2 is locked and not listed"]
    assert len(differences(document({"a": ("1", "0" * 64), "b": ("3", "1" * 64)}), file)) == 2
    assert len(differences(document({"a": ("1", "0" * 64), "b": ("2", "2" * 64)}), file)) == 2
    assert differences({**whole, "serialNumber": "urn:uuid:1"}, file) != []
    (tmp_path / "empty.txt").touch()
    assert differences({"bomFormat": "CycloneDX"}, tmp_path / "empty.txt") != []


def document(packages: dict[str, tuple[str, str]]) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "components": [
            {
                "name": name,
                "version": version,
                "externalReferences": [{"hashes": [{"alg": "SHA-256", "content": sha256}]}],
            }
            for name, (version, sha256) in packages.items()
        ],
    }


def test_all_that_is_locked_is_read() -> None:
    text = (ROOT / "requirements" / "runtime.txt").read_text()
    packages = locked(ROOT / "requirements" / "runtime.txt")
    assert len(packages) == len(re.findall(r"^[^ ]+==", text, re.MULTILINE)) > 0
    assert sum(len(each.sha256) for each in packages) == text.count("--hash=sha256:")


@needs_the_audit
def test_the_list_is_the_same_each_time(tmp_path: Path) -> None:
    made = [tmp_path / "first.json", tmp_path / "second.json"]
    for path in made:
        command = ["make", "--no-print-directory", "sbom", f"SBOM={path}"]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert made[0].read_bytes() == made[1].read_bytes()


# Images


def test_images_are_pinned_by_what_the_registry_says_all_or_none(tmp_path: Path) -> None:
    copy(tmp_path)
    lock(tmp_path, lambda name: f"sha256:{name.encode().hex():0<64.64}")
    assert {image.name: image.digest for image in images(tmp_path)} == {
        name: f"sha256:{name.encode().hex():0<64.64}" for name in {image.name for image in images(ROOT)}
    }
    pinned = [(tmp_path / file).read_text() for file in FILES]
    lock(tmp_path, lambda name: f"sha256:{name.encode().hex():0<64.64}")
    assert [(tmp_path / file).read_text() for file in FILES] == pinned
    with pytest.raises(ValueError, match="not a digest"):
        lock(tmp_path, lambda name: "latest" if name.startswith("redis") else f"sha256:{'0' * 64}")
    assert [(tmp_path / file).read_text() for file in FILES] == pinned


def copy(folder: Path) -> None:
    for file in FILES:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes((ROOT / file).read_bytes())


def test_all_images_are_pinned_and_all_files_name_the_same() -> None:
    named = images(ROOT)
    assert all(image.digest for image in named)
    assert len({(image.name, image.digest) for image in named}) == len({image.name for image in named})
    assert {image.file for image in named} == set(FILES)
    base = {file: {(each.name, each.digest) for each in named if each.file == file} for file in FILES}
    assert base["Dockerfile"] <= base["docker-compose.yml"]


def test_no_image_is_named_where_it_is_not_looked_for() -> None:
    dockerfile, compose, stack, chart = ((ROOT / file).read_text() for file in FILES)
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", dockerfile, re.MULTILINE))
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) <= stages | {"${BASE_IMAGE}"}
    assert "--from=" not in re.sub(rf"--from=({'|'.join(stages)})\b", "", dockerfile)
    from_elsewhere = [
        image
        for text in (compose, stack)
        for image in {service["image"] for service in yaml.safe_load(text)["services"].values()}
        if not re.match(r"(\$\{PARALLELRUN_REGISTRY:-\})?parallelrun-", image)
    ]
    assert all(re.fullmatch(r"\$\{\w+_IMAGE:-[^}]+\}", image) for image in from_elsewhere)
    of_chart = re.findall(r"^ *image: (\S+)$", chart, re.MULTILINE)
    assert len(images(ROOT)) == 2 + len(from_elsewhere) + len(of_chart)


def test_the_statement_about_images_names_all_that_they_were_made_of() -> None:
    document = statement({"parallelrun-agent:0.1.0": "a" * 64}, "b" * 40)

    assert document["subject"] == [{"name": "parallelrun-agent:0.1.0", "digest": {"sha256": "a" * 64}}]
    dependencies = document["predicate"]["buildDefinition"]["resolvedDependencies"]
    digests = {each["name"]: each["digest"] for each in dependencies}
    assert digests["sources"] == {"gitCommit": "b" * 40}
    assert any(each.name in digests for each in images(ROOT) if each.file == "Dockerfile")
    command = ["sha256sum", "requirements/runtime.txt"]
    sums = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert digests["requirements/runtime.txt"] == {"sha256": sums.stdout.split()[0]}
