"""What a submitter can name to have the secret of somebody's datastore sent elsewhere."""

from __future__ import annotations

import secrets
from functools import partial

from tests.acceptance.http_user import HttpUser
from tests.security.attack import Attack, Target
from tests.security.attacks.paths import submit
from tests.security.local_store import ALLOWED, SHARED, store_of
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
    victim = {
        "type": "s3", "bucket": ALLOWED, "endpoint": store.url, "region": "us-east-1",
        "credentials": {"secret": SECRET_OF_STORE},
    }  # fmt: skip
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


_OTHER = f"attacker{secrets.token_hex(2)}"
ATTACKS: list[Attack] = [
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
