"""The chart's Pods can gain nothing, and are reached by nobody but who needs them: as the templates say it.

`tests/engines` renders and installs the chart; this reads it, so that it is asked on every machine.
"""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
import yaml

from parallelrun_core.untrusted.addresses import Reach, reach_of

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "parallelrun"
TEMPLATES = CHART / "templates"
HELPERS = (TEMPLATES / "_helpers.tpl").read_text()
OF_PODS = ("_helpers.tpl", "redis.yaml")


def defined(name: str) -> dict[str, object]:
    """A definition of the chart's helpers, with something in place of what is filled in."""
    text = HELPERS.partition(f'{{{{- define "{name}" -}}}}')[2].partition("{{- end -}}")[0]
    made: dict[str, object] = yaml.safe_load(re.sub(r"\{\{.*?\}\}", "1", text))
    return made


def test_pods_are_no_root_and_have_the_runtimes_filter_of_system_calls() -> None:
    security = defined("parallelrun.podSecurity")

    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}


def test_containers_gain_no_rights_and_write_to_no_root() -> None:
    assert defined("parallelrun.containerSecurity") == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("name", OF_PODS)
def test_each_pod_and_each_container_says_so(name: str) -> None:
    text = (TEMPLATES / name).read_text()
    uses = re.findall(r'include "parallelrun\.(\w+)Security"', text)
    containers = len(re.findall(r"^\s+- name: .+\n\s+image: ", text, re.MULTILINE))

    assert uses.count("pod") >= 1
    assert uses.count("container") == containers > 0
    assert "privileged: true" not in text
    assert "hostNetwork" not in text
    assert "hostPath" not in text


def test_no_other_template_has_containers() -> None:
    image = re.compile(r"^\s+image: ", re.MULTILINE)
    with_images = {path.name for path in TEMPLATES.iterdir() if image.search(path.read_text())}

    assert with_images == set(OF_PODS)


def test_only_the_provisioner_has_a_token_of_kubernetes() -> None:
    for name in OF_PODS:
        [granted] = re.findall(r"automountServiceAccountToken: (.*)", (TEMPLATES / name).read_text())
        assert granted in ("false", '{{ eq .component "provisioner" }}')


def test_networks_are_closed_unless_somebody_opens_them() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    policies = (TEMPLATES / "network.yaml").read_text()

    assert values["networkPolicy"]["enabled"] is True
    assert policies.count("kind: NetworkPolicy") == 4
    assert "egress: []" in policies


def test_nodes_do_not_reach_where_clouds_hand_out_credentials() -> None:
    closed = yaml.safe_load((CHART / "values.yaml").read_text())["networkPolicy"]["closedNetworks"]

    networks = [ip_network(each) for each in closed]
    for address in ("169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "fd00:ec2::254"):
        assert any(ip_address(address) in network for network in networks), address
        assert reach_of(ip_address(address)) is Reach.MACHINE


def test_no_container_of_compose_or_swarm_is_without_the_engines_filter() -> None:
    for path in (ROOT / "docker-compose.yml", ROOT / "deploy" / "swarm" / "stack.yml"):
        text = path.read_text()
        assert "unconfined" not in text
        assert "privileged" not in text
