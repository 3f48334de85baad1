"""What the proofs find when a command is made of paths as they come, and when workers get what installers need."""

from __future__ import annotations

import pytest

from tests.security import test_commands as commands
from tests.security.attacks import scripts
from tests.security.targets.node import services
from tests.twins.sabotage import expect_failure

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "name, mechanism",
    [
        ("paths of a command's inputs that its shell would run", "command.plain"),
        ("paths of a command's inputs that another program would run", "command.words"),
        ("values of a command's inputs in their variables, and names of inputs", "command.variables"),
    ],
)
def test_paths_that_are_run_are_found(name: str, mechanism: str) -> None:
    with expect_failure():
        commands.check_attack(name, mechanism)


@pytest.mark.parametrize("name", [attack.name for attack in scripts.ATTACKS if "passwords of package" in attack.name])
def test_passwords_of_installers_that_workers_get_are_found(name: str) -> None:
    [attack] = [attack for attack in scripts.ATTACKS if attack.name == name]
    with services(name="sabotaged", without="worker.variables") as target, expect_failure():
        assert attack.play(target) == ""
