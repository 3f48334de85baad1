"""What a submitter can name to have the secret of somebody's datastore sent elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.acceptance.http_user import HttpUser
from tests.security.attack import Attack, NotPlayable, Target
from tests.security.attacks.paths import READING, submit
from tests.security.attacks.words import by_all_doors
from tests.security.local_store import ALLOWED, PRIVATE, REFUSED, SHARED, LocalStore, reached_store, store_of
from tests.security.target import KEY_IN_STORE, SECRET_OF_STORE

_VICTIM = "victim"


def _misused(attempt: Callable[[HttpUser, LocalStore, Target], object], target: Target) -> str:
    """Let somebody try to have the secret of the victim's datastore sent elsewhere, or to have what it says read from
    elsewhere; returns where somebody has asked.
    """
    store = reached_store(target)
    victim = _of_victim(store)
    with HttpUser(target.url, target.token) as user:
        user.client.put(f"/v1/datastores/{_VICTIM}", json=victim).raise_for_status()
        status, job = submit(user, target, inputs={"data": f"azureml://datastores/{_VICTIM}/paths/x"})
        assert status == 202, job
        assert any(KEY_IN_STORE in request.authorization for request in store.requests), job["failure"]
        store.requests.clear()
        attempt(user, store, target)
        user.client.put(f"/v1/datastores/{_VICTIM}", json=victim).raise_for_status()
    own = store.url.partition("://")[2]
    for request in store.requests:
        is_own = request.host == own and request.path.startswith(f"/{ALLOWED}")
        if KEY_IN_STORE in request.authorization and not is_own:
            return f"the secret of the store {own} was used for {request.host}{request.path}"
        if f"/{PRIVATE}/" in request.path:
            return f"the store {own} has led somebody to {request.host}{request.path}"
    return ""


def _read(user: HttpUser, target: Target, name: str, **settings: Any) -> None:
    submit(user, target, **{"inputs": {"data": f"azureml://datastores/{name}/paths/x"}, **settings})


def _defined(
    name: str, fields: dict[str, Any], user: HttpUser, store: LocalStore, target: Target, *, is_new: bool = False
) -> None:
    """Define a datastore with the secret of another one, and read from it.

    Args:
        name: of the datastore; that of the victim's defines it anew.
        fields: how it differs from the victim's; `SERVER` stands for a server by another name.
        is_new: after the victim's was deleted.
    """
    changed = {field: store.other_url if value == "SERVER" else value for field, value in fields.items()}
    if is_new:
        user.client.delete(f"/v1/datastores/{_VICTIM}").raise_for_status()
    user.client.put(f"/v1/datastores/{name}", json={**_of_victim(store), **changed})
    _read(user, target, name)


def _spelled(user: HttpUser, store: LocalStore, target: Target) -> None:
    """Name the secret in another way, for a bucket of one's own."""
    for number, secret in enumerate(_SPELLINGS):
        fields = {"bucket": SHARED, "credentials": {"secret": secret}}
        _defined(f"{_OTHER}{number}", fields, user, store, target)


def _by_settings(user: HttpUser, store: LocalStore, target: Target) -> None:
    """Give a job the settings with which libraries of stores go elsewhere, and name the victim's datastore."""
    name = f"{_OTHER}-by-settings"  # of which no service has a client yet
    user.client.put(f"/v1/datastores/{name}", json=_of_victim(store)).raise_for_status()
    names = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY")
    _read(user, target, name, environment_variables=dict.fromkeys(names, store.other_url))
    place = f"azureml://datastores/{_VICTIM}/paths"
    for path in (f"{place}/x?endpoint={store.other_url}", f"{place}@{store.other_url}/x", f"{place}/../../{SHARED}/x"):
        submit(user, target, inputs={"data": path})
        submit(user, target, output=path)


def _led_away(user: HttpUser, store: LocalStore, target: Target) -> None:
    """Let the victim's own store say that an object is on another server."""
    for status in (301, 302, 307, 308):
        store.redirects[f"{ALLOWED}/away"] = (status, f"{store.other_url}/{PRIVATE}/x")
        _read(user, target, _VICTIM, inputs={"data": f"azureml://datastores/{_VICTIM}/paths/away"})


def _told(target: Target) -> str:
    """Look for the secret of a datastore in what is told of a job that has failed by it."""
    store = reached_store(target)
    with HttpUser(target.url, target.token) as user:
        user.client.put(f"/v1/datastores/{_VICTIM}", json=_of_victim(store)).raise_for_status()
        status, job = submit(user, target, inputs={"data": f"azureml://datastores/{_VICTIM}/paths/{REFUSED}"})
        assert (status, job["state"]) == (202, "failed"), job
        defined = [(path, user.client.get(path).text) for path in ("/v1/datastores", f"/v1/datastores/{_VICTIM}")]
    told = [*defined, *by_all_doors(target, str(job["id"]))]
    return next((f"{name} has the secret" for name, text in told if KEY_IN_STORE in text), "")


def _of_victim(store: LocalStore) -> dict[str, object]:
    return {
        "type": "s3", "bucket": ALLOWED, "endpoint": store.url, "region": "us-east-1",
        "credentials": {"secret": SECRET_OF_STORE},
    }  # fmt: skip


def _redirected(status: int, target: Target) -> str:
    """Read a file that jobs may read, whose server says that it is on another one."""
    store = reached_store(target)
    store.redirects[f"{ALLOWED}/away"] = (status, f"{store.other_url}/{PRIVATE}/x")
    store.redirects[f"{ALLOWED}/here"] = (status, f"{store.url}/{ALLOWED}/x")
    store.requests.clear()
    with HttpUser(target.url, target.token) as user:
        submit(user, target, READING, inputs={"data": f"{store.url}/{ALLOWED}/away"})
        if any(f"/{PRIVATE}/" in request.path for request in store.requests):
            return f"a redirect with {status} was followed to {store.other_url}"
        status, job = submit(user, target, READING, inputs={"data": f"{store.url}/{ALLOWED}/here"})
        assert (status, job["state"]) == (202, "completed"), job["failure"]
    return ""


def _metadata(target: Target) -> str:
    """Name the metadata of a cloud, in any spelling of its address."""
    hosts = (
        "169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]", "192.0.0.192",
        "100.100.100.200", "168.63.129.16",
    )  # fmt: skip
    with HttpUser(target.url, target.token) as user:
        for host in hosts:
            status, answer = submit(user, target, inputs={"data": f"https://{host}/latest/meta-data"})
            said = str(answer.get("errors", ""))
            if status == 202 or "only machines themselves" not in said:
                return f"{host} was accepted: {answer}"
            document = {"type": "s3", "bucket": "latest", "endpoint": f"https://{host}"}
            if user.client.put("/v1/datastores/metadata", json=document).is_success:
                return f"{host} was accepted as an endpoint"
    return ""


def _secrets_as_input(target: Target) -> str:
    """Name the folder of secrets as an input, and let the API show what is in it, too."""
    if store_of(target) is None:
        raise NotPlayable("secrets are on a volume that the API doesn't have")
    place = f"{target.inputs_there}/../secrets"
    with HttpUser(target.url, target.token) as user:
        for path in (place, f"{place}/datastores", f"{place}/datastores/{SECRET_OF_STORE}", f"{place}/*/*"):
            rows = {"path": path, "transformations": [{"read_delimited": {"delimiter": "~", "header": False}}]}
            shown = user.client.post("/v1/jobs:preview", json={"inputs": {"rows": rows}}, timeout=60)
            if shown.is_success or KEY_IN_STORE in shown.text:
                return f"{path} is shown: {shown.text[:300]}"
            if submit(user, target, READING, inputs={"data": path})[0] == 202:
                return f"{path} was accepted as an input"
    return ""


_OTHER = f"attacker{secrets.token_hex(2)}"
_SPELLINGS = (
    SECRET_OF_STORE, f"./{SECRET_OF_STORE}", f"x/../{SECRET_OF_STORE}", f"{SECRET_OF_STORE}/", f"/{SECRET_OF_STORE}",
    f"{SECRET_OF_STORE}\n", f" {SECRET_OF_STORE}", f"{SECRET_OF_STORE}\0", f"..//datastores/{SECRET_OF_STORE}",
    f"{SECRET_OF_STORE}%00", f"../datastores/{SECRET_OF_STORE}", SECRET_OF_STORE.upper(),
    SECRET_OF_STORE.replace("i", "\u0456"),
)  # fmt: skip
ATTACKS: list[Attack] = [
    Attack("an input whose server redirects to another one", partial(_redirected, 302)),
    Attack("an input whose server redirects to another one, with the method", partial(_redirected, 307)),
    Attack("addresses of a cloud's metadata as inputs and endpoints", _metadata),
    Attack("the folder of the stores' secrets as an input", _secrets_as_input),
    Attack("the secret of a datastore in what is told of a job that fails by it", _told),
    Attack(
        "a second datastore that has another's secret sent to its server",
        partial(_misused, partial(_defined, _OTHER, {"endpoint": "SERVER"})),
    ),
    Attack(
        "a datastore defined anew so that its secret goes to another server",
        partial(_misused, partial(_defined, _VICTIM, {"endpoint": "SERVER"})),
    ),
    Attack(
        "a datastore deleted and defined anew so that its secret goes to another server",
        partial(_misused, partial(_defined, _VICTIM, {"endpoint": "SERVER"}, is_new=True)),
    ),
    Attack(
        "a second datastore that has another's secret used for another bucket",
        partial(_misused, partial(_defined, _OTHER, {"bucket": SHARED})),
    ),
    Attack("other spellings of another's secret", partial(_misused, _spelled)),
    Attack("settings of a job that have a datastore's secret sent elsewhere", partial(_misused, _by_settings)),
    Attack("a store that redirects to another server", partial(_misused, _led_away)),
]
