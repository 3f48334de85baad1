"""Every operation that the documentation calls refused is refused, in words of ours that name it.

The table lies beside this script. Those that its client ends by itself, before it asks a server, are named here.
"""

import inspect
import re
from pathlib import Path

from azure.ai.ml import MLClient
from azure.ai.ml.entities import Workspace
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential

BY_THE_CLIENT = {
    "data.mount",
    "data.share",
    "datastores.mount",
    "environments.share",
    "models.share",
    "components.prepare_for_sign",
}
"""They need Azure's runtime, or ask Azure's own service of registries."""
BY_ENTITY = {
    "data.import_data",
    "models.package",
    "workspaces.begin_create",
    "workspaces.begin_update",
}
"""They need more than names: see `WITH_ENTITIES`, as far as all releases have the entities."""
WITH_ENTITIES = {
    "workspaces.begin_create": (Workspace(name="other", location="local"), "workspaces"),
    "workspaces.begin_update": (Workspace(name="w", description="other"), "workspaces"),
}
NAMED = {  # what the words name, where it isn't the group
    "begin_start": "start",
    "begin_stop": "stop",
    "begin_restart": "restart",
    "enable_sso": "enableSso",
    "get_keys": "listKeys",
    "begin_sync_keys": "resyncKeys",
    "begin_provision_network": "provisionManagedNetwork",
    "begin_diagnose": "diagnose",
    "begin_delete": "workspaces",
}
WHOLE = {  # the groups that are refused whole, and what the words name
    "online_endpoints": "onlineEndpoints",
    "online_deployments": "onlineEndpoints/deployments",
    "serverless_endpoints": "serverlessEndpoints",
    "registries": "registries",
    "feature_sets": "featuresets",
    "feature_store_entities": "featurestoreEntities",
    "connections": "connections",
    "workspace_outbound_rules": "outboundRules",
    "marketplace_subscriptions": "marketplaceSubscriptions",
    "indexes": "indexes",
    "azure_openai_deployments": "connections",
}
ARGUMENTS = {"version": "1", "delete_dependent_resources": False}


def refused_in(text):
    """The operations that the tables call refused, each as `group.operation`, and the groups that are refused whole."""
    operations, whole, groups = set(), set(), []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) < 3:
            continue
        quoted = re.findall(r"`([a-z_.]+)`", cells[0])
        if cells[0].startswith("of "):
            groups = [] if cells[0].startswith("of all others") else quoted
        elif not groups:
            whole.update(quoted)
        elif cells[1] == "refused":
            group = next((name.split(".")[0] for name in quoted if "." in name), "")
            for name in quoted:
                verb = name.rpartition(".")[2]
                operations.update({f"{group}.{verb}"} if group else {f"{each}.{verb}" for each in groups})
    return operations, whole


def answered(operation, *entities):
    """What is said of an operation that is asked for by names alone, or by an entity."""
    required = [
        parameter
        for parameter in inspect.signature(operation).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    positional = [each for each in required if each.kind is not each.KEYWORD_ONLY]
    arguments = entities or tuple(ARGUMENTS.get(each.name, "some") for each in positional)
    keywords = {each.name: ARGUMENTS.get(each.name, "some") for each in required if each not in positional}
    if "version" in inspect.signature(operation).parameters and "version" not in [each.name for each in positional]:
        keywords["version"] = ARGUMENTS["version"]
    try:
        result = operation(*arguments, **keywords)
        result = result.result() if hasattr(result, "result") else list(result)
    except HttpResponseError as error:
        return str(error)
    return f"taken: {result}"


ml_client = MLClient.from_config(credential=DefaultAzureCredential())
operations, whole = refused_in(Path("azure-client.md").read_text())
checked = 0
for name in sorted(operations - BY_THE_CLIENT - (BY_ENTITY - set(WITH_ENTITIES))):
    group, verb = name.split(".")
    if not hasattr(getattr(ml_client, group, None), verb):
        continue  # in no release, or in a later one
    entity, thing = WITH_ENTITIES.get(name, (None, NAMED.get(verb, "")))
    text = answered(getattr(getattr(ml_client, group), verb), *([entity] if entity else []))
    assert "ParallelRun has no " in text, (name, text)
    assert f"'{thing}'" in text or f"({thing})" in text, (name, text)
    checked += 1
for group in sorted(whole & set(WHOLE)):
    for verb in ("list", "get", "delete", "begin_delete", "begin_remove"):
        operation = getattr(getattr(ml_client, group, None), verb, None)
        if operation is None or (group, verb) in {("online_endpoints", "begin_delete"), ("registries", "get")}:
            continue  # the client itself fails before it asks
        text = answered(operation)
        assert "ParallelRun has no " in text, (group, verb, text)
        assert WHOLE[group] in text, (group, verb, text)
        checked += 1
assert checked > 25, checked
