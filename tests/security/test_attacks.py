"""Every attack against an embedded cluster is held, as `make attack` plays it; and the runner sees one that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.security import __main__ as runner
from tests.security import targets
from tests.security.attack import Attack, Target
from tests.security.attacks import archives, scripts
from tests.security.playing import HELD, NOT_PROMISED, OPEN, all_attacks, attacks_by_module, play_all
from tests.security.targets.node import services

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def embedded() -> Iterator[Target]:
    with targets.reach("embedded") as target:
        yield target


@pytest.mark.slow
@pytest.mark.parametrize("module", attacks_by_module())
def test_every_attack_on_an_embedded_cluster_is_held(embedded: Target, module: str) -> None:
    attacks = attacks_by_module()[module]

    played = list(play_all(embedded, attacks))

    assert [str(each) for each in played if each.outcome not in (HELD, NOT_PROMISED)] == []
    assert {each.attack for each in played if each.outcome == NOT_PROMISED} == {
        attack.name for attack in attacks if attack.apart_only or attack.own_only or attack.shared_only
    }


def test_no_two_attacks_have_one_name() -> None:
    names = [attack.name for attack in all_attacks()]

    assert len(set(names)) == len(names)


def test_an_attack_that_gets_through_is_reported_as_open() -> None:
    """What daemons leave behind is not ended here: the same attack as ever must then be seen to succeed."""
    [daemon] = [attack for attack in scripts.ATTACKS if attack.name == "a daemon that outlives its job"]
    with services(name="sabotaged", without="worker.end_orphans") as target:
        [played] = play_all(target, [daemon])

    assert (played.outcome, played.why) == (OPEN, "a later job on the node saw ['1 alive']")


@pytest.mark.parametrize(
    "play, why",
    [(lambda _: "got through", "got through"), (lambda _: 1 / 0, "it could not be played to its end: Zero")],
    ids=["open", "broken"],
)
def test_the_last_line_counts_and_the_exit_code_says_whether_all_is_held(
    play: Callable[[object], str], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [*archives.ATTACKS[:1], Attack("bad", play), Attack("apart", play, apart_only=True)]
    monkeypatch.setattr(runner, "attacks_by_module", lambda: {"chosen": chosen})
    with services(name="embedded") as target:
        monkeypatch.setattr(runner, "play_on", lambda _, which: runner.tally(play_all(target, which)))
        code = runner.main(["--target", "embedded"])

    lines = capsys.readouterr().out.splitlines()
    assert code == 1
    assert lines[0] == f"held  embedded    {chosen[0].name}"
    assert lines[1].startswith(f"OPEN  embedded    bad: {why}")
    assert lines[2] == "n/a   embedded    apart (workers are the agent's user here; SECURITY.md)"
    assert lines[3] == "attack attempts=2 held=1"
