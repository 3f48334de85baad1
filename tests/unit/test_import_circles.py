"""No module needs, even by way of others, a module that needs it: each can be read with those below it alone."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.unit.test_layout import PACKAGES

FIRST_PARTY = sorted(package for packages in PACKAGES.values() for package in packages)


def circle_in(graph: grimp.ImportGraph) -> list[str]:
    """The modules of one circle, in the order in which each is imported by the next; empty if there is none."""
    try:
        TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


@pytest.mark.parametrize("package", FIRST_PARTY)
def test_no_imports_go_round_in_a_circle_not_even_for_types_alone(package: str) -> None:
    assert circle_in(grimp.build_graph(package, cache_dir=None)) == []


def test_a_circle_through_several_modules_is_noticed() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in [("p.a", "p.b"), ("p.b", "p.c"), ("p.c", "p.a"), ("p.d", "p.a")]:
        graph.add_import(importer=importer, imported=imported)

    assert set(circle_in(graph)) == {"p.a", "p.b", "p.c"}
