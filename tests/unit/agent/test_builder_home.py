"""What the users keep that build environments: as much as those environments need, and nothing without any."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_agent.environments.builder_home import home_of, open_home, prune_homes
from parallelrun_agent.environments.cache import InUse, builders_of, make_place, prune
from parallelrun_agent.users.choice import Uids
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from tests.unit.core.factories import open_descriptors

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")

UIDS = Uids.parse("20000-59999")
ANNA, BEN = (WorkerUser(UIDS.builder_of(owner)) for owner in ("anna", "ben"))


@pytest.fixture
def cache() -> Iterator[Path]:
    """A folder that any user can get to, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    SAME_USER.remove(folder)


def build(cache: Path, name: str, builder: WorkerUser, used: float) -> InUse:
    """An environment that a builder has built, with what it has downloaded for it; returns that it is at work."""
    folder = cache / "environments" / name
    folder.parent.mkdir(exist_ok=True)
    os.close(make_place(folder, builder))
    InUse(folder).close()
    os.utime(folder.with_suffix(".use"), (used, used))
    home = home_of(cache, builder)
    at_work = InUse(home)
    open_home(home, builder)
    with builder.acting():
        (home / "cache" / name).mkdir(mode=0o700)
        (home / "cache" / name / "package").touch()
        (home / "pythons").mkdir(exist_ok=True)
    return at_work


def pruned(cache: Path, most: int) -> list[str]:
    """What goes of the builders when so many environments stay."""
    environments = cache / "environments"
    before = builders_of(environments, UIDS)
    prune(environments, most, UIDS)
    return prune_homes(cache, before, builders_of(environments, UIDS), UIDS)


def test_a_builders_cache_goes_with_an_environment_and_the_rest_with_its_last_one(cache: Path) -> None:
    before = open_descriptors()
    for number, builder in enumerate((ANNA, ANNA, BEN)):
        build(cache, f"e{number}", builder, 1e9 + number).close()
    homes = {builder: home_of(cache, builder) for builder in (ANNA, BEN)}
    assert pruned(cache, 3) == []
    assert pruned(cache, 2) == [str(homes[ANNA] / "cache")]
    assert (homes[ANNA] / "pythons").is_dir()  # of the environment that is left
    assert (homes[BEN] / "cache" / "e2" / "package").exists()
    assert pruned(cache, 1) == [str(homes[ANNA])]
    assert [path.name for path in (cache / "builders").iterdir() if path.is_dir()] == [str(BEN.uid)]
    assert open_descriptors() == before
    open_home(homes[ANNA], ANNA)  # as if nothing had been


@pytest.mark.parametrize("most", [1, 0])
def test_a_builder_at_work_keeps_its_cache_until_the_next_time(cache: Path, most: int) -> None:
    build(cache, "e0", ANNA, 1e9).close()
    at_work = build(cache, "e1", ANNA, 2e9)
    home = home_of(cache, ANNA)
    assert pruned(cache, most) == []
    assert (home / "cache" / "e1" / "package").exists()
    at_work.close()
    assert pruned(cache, 0) == [str(home)]


def test_what_a_killed_process_has_moved_away_of_a_builder_is_removed(cache: Path) -> None:
    for number, builder in enumerate((ANNA, BEN)):
        build(cache, f"e{number}", builder, 1e9).close()
    (home_of(cache, ANNA) / "cache").rename(home_of(cache, ANNA) / "cache.removed")
    home_of(cache, BEN).rename(cache / "builders" / f"{BEN.uid}.removed")
    assert sorted(pruned(cache, 2)) == sorted([str(home_of(cache, ANNA) / "cache"), str(home_of(cache, BEN))])
    assert not list((cache / "builders").rglob("*.removed"))


def test_a_link_that_a_package_has_put_where_the_cache_was_leads_nowhere(cache: Path) -> None:
    (secret := cache / "secret").mkdir(mode=0o700)
    (secret / "file").touch()
    for number in range(2):
        build(cache, f"e{number}", ANNA, 1e9 + number).close()
    with ANNA.acting():
        (home_of(cache, ANNA) / "cache").rename(home_of(cache, ANNA) / "aside")
        (home_of(cache, ANNA) / "cache").symlink_to(secret)
    pruned(cache, 1)
    assert (secret / "file").exists()
