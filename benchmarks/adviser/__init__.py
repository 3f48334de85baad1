"""What the adviser says of jobs with something planted in them, and of the same jobs mended.

For each case, the job runs with its bottleneck; what is found first is done; and the job runs again. Counted are the
cases in which the planted thing is found first, those in which nothing is said of the mended job, and by how much its
time differs from the predicted one, as a share of the time of the slow job. Those that fit on a machine with two CPUs
are real jobs on a cluster, whose workers mostly sleep; many nodes, quotas, memory and slow storage are simulated.

Also: the worst error of times that are computed for other numbers of processes (real) and of nodes (simulated).
"""

from __future__ import annotations

from benchmarks import Size
from benchmarks.adviser.cases import Outcome, play
from benchmarks.adviser.planted import error_of_nodes, planted
from benchmarks.adviser.real import Machine


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    outcomes = [_shown(play(each.case())) for each in planted()]
    of_nodes, of_processes = error_of_nodes(), None
    if size != "tiny":
        with Machine() as machine:
            outcomes += [_shown(play(case)) for case in machine.cases()]
            of_processes = machine.error_of_processes()
    figures: dict[str, object] = {
        "cases": len(outcomes),
        "first": sum(outcome.is_first for outcome in outcomes),
        "silent": sum(outcome.is_silent for outcome in outcomes),
        "worst_prediction_error": f"{max(outcome.error for outcome in outcomes):.3f}",
        "worst_nodes_error": f"{of_nodes:.3f}",
    }
    return figures if of_processes is None else figures | {"worst_processes_error": f"{of_processes:.3f}"}


def _shown(outcome: Outcome) -> Outcome:
    found = "found first" if outcome.is_first else "NOT FOUND"
    print(f"  {outcome.name:28} {found}, error {outcome.error:.3f}: {outcome.said}", flush=True)
    return outcome
