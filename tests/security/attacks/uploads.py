"""What can be sent besides a job: code and data from the page, and what Azure's client uploads and downloads."""

from __future__ import annotations

import hashlib
import json
import secrets
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from parallelrun import Client
from parallelrun.errors import ApiError
from parallelrun.packaging.code import zip_sources
from parallelrun.resources.assets import Assets
from parallelrun_core.code.source import CodeSource
from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, Target
from tests.security.attacks.archives import EVIL, archive
from tests.security.attacks.people import STORE, WORKSPACE, PersonAtDoors, person_of, printed, two_people

_GOOD: Final = {"entry.py": "def run(mini_batch):\n    return mini_batch\n"}
_JSON: Final = "application/json"
_NAMES: Final = (
    "..", "../x", "x/../../y", "/x", "\\x", "..\\x", "c:\\x", "a\x01b", "a\nb", "x" * 300, "d/" * 40 + "x", "x//../y",
    "entry.py/x", "ENTRY.py",
)  # fmt: skip
"""Of files in a zip."""
_PLACES: Final = (
    "..", ".", "%2e%2e", "%2e%2e%2f%2e%2e%2fjobs", "a%2fb", "a%5c..%5cb", "a%00b", "x" * 200, "%0d%0aX:1", "*", "-",
    "a/../../code",
)  # fmt: skip
"""What an asset could be called."""


def _form(document: object, content: bytes | tuple[str, bytes, str], part: str = "content") -> dict[str, Any]:
    return {"spec": (None, json.dumps(document), _JSON), part: content}


def _swapped_name() -> bytes:
    """A zip whose list of files calls one differently than the file itself does."""
    packed = archive(("aa/good.py", b"x"))
    at = packed.rindex(b"aa/good.py")
    return packed[:at] + b"../evil.py" + packed[at + 10 :]


def _bodies() -> Mapping[str, Callable[[httpx.Client, str], httpx.Response]]:
    """What is sent as code, by what is wrong with it."""
    good = zip_of(_GOOD)
    boundary = {"Content-Type": "multipart/form-data; boundary=b"}
    head = b'--b\r\nContent-Disposition: form-data; name="spec"\r\n\r\n{}\r\n--b\r\nContent-Disposition: form-data; '

    def raw(content: bytes, headers: Mapping[str, str]) -> Callable[[httpx.Client, str], httpx.Response]:
        return lambda client, url: client.put(url, content=content, headers=dict(headers))

    def form(**files: Any) -> Callable[[httpx.Client, str], httpx.Response]:
        return lambda client, url: client.put(url, files={"spec": (None, "{}", _JSON), **files})

    zips = {name: make() for name, make in EVIL.items()} | {
        f"a file {name[:40]!r}": archive((name, b"x")) for name in _NAMES
    }
    return {
        **{name: form(content=packed) for name, packed in zips.items()},
        "two names": form(content=_swapped_name()),
        "a zip alone": raw(good, {"Content-Type": "application/zip"}),
        "a page": raw(b"<script>", {"Content-Type": "text/html"}),
        "no type": raw(good, {}),
        "no boundary": raw(good, {"Content-Type": "multipart/form-data"}),
        "no end": raw(head + b'name="content"\r\n\r\n' + good, boundary),
        "a part of another name": form(content=good, evil=good),
        "code called otherwise": form(code=good),
        "no zip": form(content=b"#!/bin/sh\n"),
        "nothing": form(content=b""),
        "the name of a file as code": lambda client, url: client.put(url, json={"path": "/etc"}),
        "the place of other code": form(spec=(None, json.dumps({"snapshot": "../../jobs"}), _JSON)),
        "a document of 2 MiB": form(spec=(None, json.dumps({"description": "x" * (2 << 20)}), _JSON), content=good),
    }


def _code_that_leads_elsewhere(target: Target) -> str:
    """Send code as the page does, with names, links, sizes, types and places that it doesn't send."""
    name = f"code-{secrets.token_hex(8)}"
    with HttpUser(target.url, target.token) as user:
        good = user.client.put(f"/v1/assets/code/{name}/versions/1", files=_form({}, zip_of(_GOOD))).raise_for_status()
        for number, (what, send) in enumerate(_bodies().items()):
            answer = send(user.client, f"/v1/assets/code/{name}-{number}/versions/1")
            if answer.status_code not in (400, 413, 415, 422):
                return f"{what}: {answer.status_code} {answer.text[:200]}"
        for place in _PLACES:
            for path in (f"code/{place}/versions/1", f"code/{name}/versions/{place}", f"{place}/{name}/versions/1"):
                request = user.client.build_request("PUT", "/v1/x", files=_form({}, zip_of(_GOOD)))
                request.url = request.url.copy_with(raw_path=f"/v1/assets/{path}".encode())
                answer = user.client.send(request)
                if answer.is_success:
                    return f"{path} was made: {answer.text[:200]}"
        odd: dict[str, bytes | tuple[str, bytes, str]] = {
            "the name of the zip": ("../../../../tmp/x\r\nX: y", zip_of(_GOOD), "text/html"),
            "the place of its code": zip_of(_GOOD),
        }
        for number, (what, content) in enumerate(odd.items()):
            document = {"snapshot": "0" * 64, "path": "/etc", "file": "../x"} if isinstance(content, bytes) else {}
            answer = user.client.put(f"/v1/assets/code/{name}-odd{number}/versions/1", files=_form(document, content))
            if answer.is_success and answer.json()["content"] != good.json()["content"]:
                return f"{what} counts: {answer.text[:200]}"
    return ""


def _code_of_others(target: Target) -> str:
    """Change what somebody has sent from the page, and take the names by which others will call what they send."""
    name, foretold, data = (f"{each}-{secrets.token_hex(8)}" for each in ("code", "code", "data"))
    zipped = {"code": zip_of(_GOOD), "data": zip_of({f"{data}/a.txt": "a"})}
    documents = {"code": {}, "data": {"type": "uri_folder", "path": data}}
    evil = {"code": zip_of({"entry.py": "evil"}), "data": zip_of({f"{data}/a.txt": "evil"})}
    with two_people(target) as (victim, thief):
        for kind, asset in (("code", name), ("data", data)):
            url = f"/v1/assets/{kind}/{asset}"
            sent = victim.user.client.put(f"{url}/versions/1", files=_form(documents[kind], zipped[kind]))
            before = sent.raise_for_status().json()
            bad = thief.user.client
            said = {**documents[kind], "description": "evil"}
            answers = {
                "replaced": bad.put(f"{url}/versions/1", files=_form(documents[kind], evil[kind])),
                "continued": bad.put(f"{url}/versions/2", files=_form(documents[kind], evil[kind])),
                "followed": bad.post(f"{url}/versions", files=_form(documents[kind], evil[kind])),
                "followed by the same": bad.post(f"{url}/versions", files=_form(documents[kind], zipped[kind])),
                "labelled": bad.put(f"{url}/labels/x", json={"version": "1"}),
                "archived": bad.post(f"{url}:archive"),
                "archived in part": bad.post(f"{url}/versions/1:archive"),
            }
            if done := [what for what, answer in answers.items() if answer.is_success]:
                return f"somebody else's {kind} was {', '.join(done)}"
            same = bad.put(f"{url}/versions/1", files=_form(said, zipped[kind]))
            if victim.user.client.get(f"{url}/versions/1").json() != before:
                return f"what is said of somebody else's {kind} was changed"
            if same.status_code != 200:
                return f"nobody else can send the same {kind}: {same.status_code} {same.text[:200]}"
        url = f"/v1/assets/code/{foretold}/versions/1"
        thief.user.client.put(url, files=_form({}, evil["code"])).raise_for_status()
        if victim.user.client.put(url, files=_form({}, zipped["code"])).is_success:
            return "somebody else's code was taken for one's own"
    return ""


def _names_of_content(target: Target) -> str:
    """Take the name by which somebody's client will call their code, which whoever knows the code foretells."""
    with (
        two_people(target) as (victim, thief),
        tempfile.TemporaryDirectory() as here,
        Client(target.url, victim.user.token) as client,
    ):
        (Path(here) / "entry.py").write_text(f"# {secrets.token_hex(8)}\n{_GOOD['entry.py']}")
        with zip_sources({"": CodeSource(Path(here))}) as content:
            name = f"code-{hashlib.sha256(content.read()).hexdigest()[:32]}"
        files = _form({}, zip_of({"entry.py": "evil"}))
        evil = thief.user.client.put(f"/v1/assets/code/{name}/versions/1", files=files).raise_for_status()
        assets = client.assets("code")
        assert isinstance(assets, Assets)
        try:
            sent = assets.send_code(Path(here))
        except ApiError as error:
            return f"the code can't be sent any more: {error}"
        if sent == evil.json()["content"]["path"]:
            return "somebody else's code was taken for one's own"
        return "" if assets.send_code(Path(here)) == sent else "the code can be sent only once"


_OUT: Final = (
    "../{root}", "..%2f..%2ftokens", "%2e%2e/%2e%2e/jobs/{job}/job.json", "..", "./x", "a/../../x", "..%5cx",
    "%252e%252e/x", "", "{container}%00/x", "{container}/../x", "{container}/%2e%2e/%2e%2e/jobs/{job}/job.json",
    "{container}/..;/x", "{container}//../x", "{container}/.../x",
)  # fmt: skip


def _sent_code(person: PersonAtDoors, name: str) -> str:
    """Upload code as Azure's client does; returns the URL of its version."""
    version = f"{WORKSPACE}/codes/{name}/versions/1"
    answer = person.azure.post(f"{version}/startPendingUpload", json={}).raise_for_status().json()
    uri = httpx.URL(answer["blobReferenceForConsumption"]["credential"]["sasUri"])
    headers = {"x-ms-blob-type": "BlockBlob"}
    blob = f"{uri.path}/src/entry.py?{uri.query.decode()}"
    person.azure.put(blob, content=b"good", headers=headers).raise_for_status()
    properties = {"codeUri": f"{uri.scheme}://{uri.netloc.decode()}{uri.path}/src", "tags": {"mine": "1"}}
    person.azure.put(version, json={"properties": properties}).raise_for_status()
    return version


def _component(name: str, code: str) -> dict[str, Any]:
    spec = {"type": "command", "name": name, "version": "1", "command": "cat *", "environment": "azureml:none:1",
            "code": code}  # fmt: skip
    return {"properties": {"componentSpec": spec}}


def _components_of_others(target: Target) -> str:
    """Change somebody's component and its code, and add to them."""
    name = f"component-{secrets.token_hex(8)}"
    with two_people(target) as (victim, thief):
        code = _sent_code(victim, name)
        code_id = f"azureml:{code.removeprefix('/azure')}"
        component = f"{WORKSPACE}/components/{name}"
        hidden = f"{WORKSPACE}/components/azureml_anonymous/versions/{secrets.token_hex(16)}"
        anonymous = _component(name, code_id)
        anonymous["properties"]["isAnonymous"] = True
        victim.azure.put(f"{component}/versions/1", json=_component(name, code_id)).raise_for_status()
        victim.azure.put(hidden, json=anonymous).raise_for_status()
        seen = (f"{component}/versions/1", code, hidden)
        before = [victim.azure.get(url).raise_for_status().json() for url in seen]
        evil = {"description": "evil", "tags": {"evil": "1"}, "isArchived": True, "properties": {"hash_sha256": "0"}}
        own_code = f"azureml:{_sent_code(thief, f'{name}-evil').removeprefix('/azure')}"
        for url in seen:
            sent = victim.azure.get(url).json()["properties"]
            thief.azure.put(url, json={"properties": {**sent, **evil}})
            thief.azure.put(url, json=_component(name, own_code))
        uri = thief.azure.get(own_code.replace("azureml:", "/azure", 1)).json()["properties"]["codeUri"]
        additions = {
            "component": thief.azure.put(f"{component}/versions/2", json=_component(name, own_code)),
            "code": thief.azure.put(
                code[:-1] + "2", json={"properties": {"codeUri": uri.replace("#.blob.core.windows.net", "")}}
            ),
            "archived": thief.azure.put(component, json={"properties": {"isArchived": True}}),
            "archived code": thief.azure.put(code.partition("/versions")[0], json={"properties": {"isArchived": True}}),
        }
        thief.azure.put(hidden.partition("/versions")[0], json={"properties": {"isArchived": True}})
        container = before[1]["properties"]["codeUri"].rpartition("azureml-code.")[2]
        path = f"azureml-code.{container}/src/entry.py"
        thief.put(path, b"evil")
        if victim.blob(path).content != b"good":
            return "somebody's code was replaced where it is downloaded"
        if done := [what for what in ("component", "code") if additions[what].is_success]:
            return f"a version was added to somebody else's {', '.join(done)}"
        if [victim.azure.get(url).json() for url in seen] != before:
            return "what is said of somebody else's component was changed"
    return ""


def _downloads_that_lead_elsewhere(target: Target) -> str:
    """Register components whose code is where jobs may not read, and download by names that lead out of code."""
    name = f"component-{secrets.token_hex(8)}"
    with person_of(target) as person:
        job_id = printed(person, target)
        code = _sent_code(person, name)
        container = person.azure.get(code).json()["properties"]["codeUri"].rpartition("azureml-code.")[2]
        signature = person.signature()
        for out in (each.format(root=target.root, job=job_id, container=container) for each in _OUT):
            for url in (
                f"{STORE}/azureml-blobstore/azureml-code.{out}",
                f"{STORE}/azureml-blobstore/azureml-code./{out}",
            ):
                request = person.azure.build_request("GET", "/x")
                request.url = request.url.copy_with(raw_path=f"{url}?{signature}".encode())
                answer = person.azure.send(request)
                if answer.is_success:
                    return f"{url} was served: {answer.text[:100]}"
                listed = person.azure.get(
                    f"{STORE}/azureml-blobstore?restype=container&comp=list&prefix=azureml-code.{out}&{signature}"
                )
                if "<Blob>" in listed.text:
                    return f"{out} was listed: {listed.text[:200]}"
        closed = [
            target.root, f"{target.root}/jobs", f"{target.root}/tokens", f"{target.root}/jobs/{job_id}", "/proc/self",
            f"{target.inputs_there}/{'../' * 30}{target.root}", f"file://{target.root}/jobs",
        ]  # fmt: skip
        if target.name != "embedded":  # there, jobs may use each folder that its owner can read
            closed.append("/etc")
        for number, place in enumerate(closed):
            version = f"{WORKSPACE}/codes/{name}-{number}/versions/1"
            if person.azure.put(version, json={"properties": {"codeUri": place}}).is_success:
                return f"{place} is code"
            if person.azure.put(
                f"{WORKSPACE}/components/{name}-{number}/versions/1", json=_component(f"{name}-{number}", place)
            ).is_success:
                return f"{place} is the code of a component"
    return ""


ATTACKS: list[Attack] = [
    Attack("code from the page that leads elsewhere", _code_that_leads_elsewhere),
    Attack("what somebody else has sent from the page", _code_of_others),
    Attack("the name of somebody's code, taken before they send it", _names_of_content),
    Attack("a component of somebody else and its code", _components_of_others),
    Attack("downloads of components that lead elsewhere", _downloads_that_lead_elsewhere),
]
