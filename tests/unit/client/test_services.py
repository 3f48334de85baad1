"""The processes of an embedded cluster and their settings; nothing is started."""

import sys
from pathlib import Path

import pytest

from parallelrun.embedded.redis_server import RedisServer
from parallelrun.embedded.services import (
    ClusterLayout,
    cluster_services,
    is_passed_on,
    node_names,
    redis_service,
)
from parallelrun_agent.settings import AgentSettings
from parallelrun_api.settings import ApiSettings
from parallelrun_concatenator.settings import ConcatenatorSettings
from parallelrun_core.hosting.settings import ServiceSettings
from parallelrun_core.retention.rules import Rules
from parallelrun_core.storage.path_rule import EVERYWHERE
from parallelrun_core.store.roles import Role
from parallelrun_master.settings import MasterSettings
from parallelrun_provisioner.settings import ProvisionerSettings

OF_THE_CLUSTER = {
    # where it is, and what it is made of: it decides that itself, or makes a path whole
    *("allow_volatile_redis", "alone_seconds", "assets_root", "compute", "ends_at", "grace_seconds", "health_port"),
    *("host", "image", "concatenators", "leaders", "node"),
    *("port", "preload", "redis_secret", "redis_secret_file", "redis_url", "root", "run_as"),
    *("slots", "work_dir", "audit_log", "cache_dir", "secrets_dir", "site", "poll_seconds", "sync", "worker_uids"),
    # whom it lets in, and where: it listens to this machine alone, whose user may do everything
    *("allowed_hosts", "allowed_roots", "closed_folders", "computes_key", "computes_key_file", "insecure"),
    *("jobs_apart", "notify_allow", "operators", "package_hosts", "pass_credentials", "proxy_user_header"),
    *("token", "token_file", "tokens_file", "trusted_proxies"),
    # nodes that engines start: for what its user has an engine (a user's own `kinds` go before), and with its secrets
    *("agent_secret", "agent_secret_file", "kinds", "node_redis_url", "release_on_stop"),
    *(name for name in ApiSettings.model_fields if name.startswith("oidc_")),
    # how much a server bears that many reach
    *("head_seconds", "max_body_bytes", "max_connections", "max_streams", "stall_seconds"),
}  # fmt: skip


def test_services_get_no_settings_of_the_users_other_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_ROOT", "/elsewhere")
    monkeypatch.setenv("PARALLELRUN_TOKEN", "of-another-cluster")
    monkeypatch.setenv("PARALLELRUN_SLOTS", "99")
    monkeypatch.setenv("PARALLELRUN_LEASE_SECONDS", "3")
    monkeypatch.setenv("PARALLELRUN_KEEP_JOBS_DAYS", "30")
    layout = ClusterLayout(home=tmp_path)

    services = cluster_services(layout, redis_url="unix:///s", port=1234, token="canary", nodes=2, slots=3)

    assert [service.name for service in services] == ["api", "master", "node1", "node2", "concatenator"]
    for service in services:
        assert service.environment["PARALLELRUN_ROOT"] == str(tmp_path / "data")
        assert service.environment["PARALLELRUN_LEASE_SECONDS"] == "3"
        assert service.environment["PARALLELRUN_KEEP_JOBS_DAYS"] == "30"
        assert "PARALLELRUN_SLOTS" not in service.environment
        assert "of-another-cluster" not in service.environment.values()
        assert service.command[:3] == (sys.executable, "-P", "-m")


def test_each_setting_of_a_service_is_the_users_or_that_of_the_cluster_itself() -> None:
    """A new setting is named here, or among those that are passed on: nobody sets one in vain and isn't told."""
    services: list[type[ServiceSettings]] = [
        AgentSettings, ApiSettings, ConcatenatorSettings, MasterSettings, ProvisionerSettings,
    ]  # fmt: skip
    settings = {name for service in services for name in service.model_fields}
    passed_on = {name for name in settings if is_passed_on(f"PARALLELRUN_{name.upper()}")}

    assert passed_on >= {*Rules.model_fields, "disk_floor_bytes", "sweep_minutes", "visibility", "stage_bytes"}
    assert "node_alone_seconds" in passed_on
    assert settings - passed_on == OF_THE_CLUSTER


def test_only_the_api_gets_the_token_and_never_as_an_argument(tmp_path: Path) -> None:
    services = cluster_services(
        ClusterLayout(home=tmp_path), redis_url="unix:///s", port=1234, token="canary", nodes=1, slots=1
    )

    assert [service.name for service in services if "canary" in service.environment.values()] == ["api"]
    assert not any("canary" in word for service in services for word in service.command)


def test_only_agents_get_what_jobs_may_refer_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_SECRET_KEY", "canary")
    monkeypatch.setenv("PARALLELRUN_SECRETS_DIR", "below")
    monkeypatch.chdir(tmp_path)
    services = cluster_services(ClusterLayout(home=tmp_path), redis_url="u", port=1, token="t", nodes=2, slots=1)

    with_it = [service for service in services if "canary" in service.environment.values()]
    assert [service.name for service in with_it] == ["node1", "node2"]
    assert {service.environment["PARALLELRUN_SECRETS_DIR"] for service in with_it} == {str(tmp_path / "below")}


def test_a_site_file_is_found_by_services_whose_current_folder_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARALLELRUN_SITE", "site.yml")
    monkeypatch.chdir(tmp_path)
    services = cluster_services(ClusterLayout(home=tmp_path), redis_url="u", port=1, token="t", nodes=1, slots=1)

    assert {service.environment["PARALLELRUN_SITE"] for service in services} == {str(tmp_path / "site.yml")}


def test_each_service_gets_its_own_password_for_redis_and_never_as_an_argument(tmp_path: Path) -> None:
    secrets = {role: f"secret-of-{role}" for role in Role}
    services = cluster_services(
        ClusterLayout(home=tmp_path), redis_url="unix:///s", port=1, token="t", nodes=1, slots=1, redis_secrets=secrets
    )

    given = {service.name: service.environment["PARALLELRUN_REDIS_SECRET"] for service in services}
    assert given == {
        ("node1" if role is Role.AGENT else str(role)): secrets[role] for role in Role if role is not Role.PROVISIONER
    }
    for service in services:
        assert [value for value in service.environment.values() if "secret-of" in value] == [given[service.name]]
        assert not any("secret-of" in word for word in service.command)


def test_each_node_has_its_own_name_and_work_folder(tmp_path: Path) -> None:
    services = cluster_services(ClusterLayout(home=tmp_path), redis_url="u", port=1, token="t", nodes=2, slots=3)

    agents = [service.command for service in services if service.name in node_names(2)]

    assert [command[command.index("--node") + 1] for command in agents] == ["node1", "node2"]
    assert len({command[command.index("--work-dir") + 1] for command in agents}) == 2
    assert all(command[command.index("--slots") + 1] == "3" for command in agents)


def test_the_redis_server_is_stopped_last(tmp_path: Path) -> None:
    server = RedisServer(binary=tmp_path, socket=tmp_path / "s", data=tmp_path)
    services = cluster_services(ClusterLayout(home=tmp_path), redis_url="u", port=1, token="t", nodes=1, slots=1)

    assert redis_service(server).stage > max(service.stage for service in services)


def test_a_home_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    layout = ClusterLayout(home=tmp_path / "home")
    layout.create()
    layout.create()

    assert all(path.stat().st_mode & 0o077 == 0 for path in (layout.home, layout.root, layout.logs, layout.work))


def test_jobs_may_use_the_whole_machine_but_not_what_the_cluster_keeps(tmp_path: Path) -> None:
    layout = ClusterLayout(home=tmp_path)
    api, *others = cluster_services(layout, redis_url="u", port=1, token="t", nodes=1, slots=1)

    assert api.environment["PARALLELRUN_ALLOWED_ROOTS"] == ":".join(EVERYWHERE)
    assert api.environment["PARALLELRUN_CLOSED_FOLDERS"].split(":") == [
        str(tmp_path / name) for name in ("data", "redis", "services", "work", "tls", "secrets")
    ]
    assert not any("PARALLELRUN_CLOSED_FOLDERS" in service.environment for service in others)
