"""An idempotency key stands for one job, for a day at least, whoever asks and by whichever clock."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree

import pytest

from parallelrun_api.http.errors import KeyReused
from parallelrun_api.submission.key_claims import KeyClaims
from parallelrun_core import durable_files
from parallelrun_core.service import failpoints
from tests.unit.documents.power_cut import PowerCut, watched

A_DAY = 86_400.0
MIDNIGHT = 20_000 * A_DAY
NOON = MIDNIGHT + A_DAY / 2


def claim(root: Path, job: str, now: float = NOON, request: str = "request", key: str = "key") -> str:
    """By a server of its own."""
    return KeyClaims(root).claim(key, request, job, now=now)


def test_a_key_stays_with_its_first_job_and_its_request(tmp_path: Path) -> None:
    assert KeyClaims(tmp_path).job_of("key", "request", now=NOON) is None
    assert [claim(tmp_path, "job_1"), claim(tmp_path, "job_2")] == ["job_1", "job_1"]
    assert KeyClaims(tmp_path).job_of("key", "request", now=NOON) == "job_1"
    with pytest.raises(KeyReused):
        claim(tmp_path, "job_3", request="other request")
    assert claim(tmp_path, "job_4", key="other key") == "job_4"


def test_of_many_that_claim_a_key_at_once_all_get_the_same_job(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as many:
        got = list(many.map(lambda number: claim(tmp_path, f"job_{number}"), range(64)))
    assert len(set(got)) == 1


@pytest.mark.parametrize("later_s", [0.0, A_DAY / 2, A_DAY - 1, A_DAY])
def test_a_key_is_kept_for_a_day(later_s: float, tmp_path: Path) -> None:
    for at in (MIDNIGHT, NOON, MIDNIGHT + A_DAY - 1):
        root = tmp_path / str(at)
        root.mkdir()
        claim(root, "job_1", now=at)
        KeyClaims(root).begin_day(at + later_s)
        assert claim(root, "job_2", now=at + later_s) == "job_1"


def test_a_key_is_free_again_when_the_next_day_is_over(tmp_path: Path) -> None:
    claim(tmp_path, "job_1", now=NOON)
    claim(tmp_path, "job_1", now=NOON + A_DAY)  # its use doesn't prolong it
    assert claim(tmp_path, "job_2", now=NOON + 2 * A_DAY) == "job_2"


def test_what_need_not_be_kept_is_removed(tmp_path: Path) -> None:
    for day in range(5):
        claim(tmp_path, f"job_{day}", now=NOON + day * A_DAY, key=f"key-{day}")
    KeyClaims(tmp_path).begin_day(NOON + 4 * A_DAY)
    kept = {path.name for path in (tmp_path / "keys").iterdir() if path.name[0] != "."}
    assert kept == {"2024-10-07", "2024-10-08", "2024-10-09"}


@pytest.mark.parametrize("other_s", [MIDNIGHT - 1, MIDNIGHT + 1])
@pytest.mark.parametrize("own_s", [MIDNIGHT - 1, MIDNIGHT + 1])
def test_two_that_meet_at_midnight_by_their_own_clocks_get_the_same_job(
    own_s: float, other_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_a_meeting(own_s, other_s, tmp_path, monkeypatch)


def check_a_meeting(own_s: float, other_s: float, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One claims a key while another is half-way."""
    got = list[str]()

    def meet(point: str) -> None:
        if not got:
            got.append("")
            got[0] = claim(root, "job_2", now=other_s)

    monkeypatch.setattr(failpoints, "reach", meet)
    own = claim(root, "job_1", now=own_s)
    monkeypatch.undo()
    again = [claim(root, f"job_{number}", now=now) for number, now in ((3, own_s), (4, other_s), (5, own_s))]
    assert {own, *got, *again} == {own}


def test_what_a_killed_process_began_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(point: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(failpoints, "reach", die)
    with pytest.raises(KeyboardInterrupt):
        claim(tmp_path, "job_1")
    monkeypatch.undo()
    assert KeyClaims(tmp_path).job_of("key", "request", now=NOON) == "job_1"
    assert claim(tmp_path, "job_2", now=NOON + A_DAY) == "job_1"


def test_a_claim_is_durable_and_nobody_elses_business(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, by_a_killed_one = tmp_path / "root", tmp_path / "by a killed one"
    root.mkdir()
    with watched(root) as disk:
        claim(root, "job_1")
    check_it_is_left(disk, tmp_path / "left", (0.0, A_DAY))
    claims = [path for path in (root / "keys").rglob("*") if path.is_file()]
    assert [path.stat().st_nlink for path in claims] == [2, 2], "it was written and synced once, for both of its names"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (root / "keys").rglob("*")} == {0o600, 0o700}
    KeyClaims(by_a_killed_one).begin_day(NOON)
    with watched(by_a_killed_one) as disk:
        with monkeypatch.context() as patched:
            patched.setattr(durable_files, "sync_folder", lambda _: None)
            claim(by_a_killed_one, "job_1")
        assert KeyClaims(by_a_killed_one).job_of("key", "request", now=NOON + A_DAY) == "job_1"
    check_it_is_left(disk, tmp_path / "left by a killed one", (A_DAY,))


def check_it_is_left(disk: PowerCut, folder: Path, later: tuple[float, ...]) -> None:
    """A power cut takes no claim that was answered."""
    folder.mkdir()
    for name, cut in (("names", disk.names_left), ("contents", disk.contents_lost)):
        cut(folder / name)
        for later_s in later:
            left = folder / f"{name} {later_s}"
            copytree(folder / name, left)
            assert claim(left, "job_2", now=NOON + later_s) == "job_1"
