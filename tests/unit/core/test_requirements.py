"""Requirements are made anew from what was read: nothing that a job writes comes to an installer as it is."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_agent.environments.recipe import recipes_of
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.intake.prepared import named
from parallelrun_core.spec import Environment
from parallelrun_core.spec.requirements import checked_index_url, parse_requirement
from parallelrun_core.storage.path_rule import Places

ZEROS = "0" * 64
COMMIT = "a" * 40


@pytest.mark.parametrize(
    "line, text",
    [
        ("Ruamel.Yaml>=1,<2; python_version<'3.12'", 'ruamel-yaml<2,>=1 ; python_version < "3.12"'),
        ("six  >=1\t--hash=sha256:" + ZEROS, f"six>=1 --hash=sha256:{ZEROS}"),
        ("x[B,a] > 1  # why", "x[a,b]>1"),
        (f"six==1.16.0 --hash=sha256:{ZEROS}", f"six==1.16.0 --hash=sha256:{ZEROS}"),
        (f"https://h.example/a/foo-1.0-py3-none-any.whl#sha256={ZEROS}",
         f"foo @ https://h.example/a/foo-1.0-py3-none-any.whl#sha256={ZEROS}"),
        (f"x @ https://h.example/x.whl --hash=sha256:{ZEROS}", f"x @ https://h.example/x.whl#sha256={ZEROS}"),
        (f"git+https://H.example/a/b.git@{COMMIT}#egg=foo&subdirectory=c/d",
         f"foo @ git+https://h.example/a/b.git@{COMMIT}#subdirectory=c/d"),
    ],
)  # fmt: skip
def test_requirement_is_written_from_what_was_read(line: str, text: str) -> None:
    assert parse_requirement(line).text == text
    assert parse_requirement(text).text == text, "what was written is read as the same"


_CHARACTERS = st.characters(codec="utf-8")
_PIECES = st.sampled_from(
    ["six", "-r ", "-e ", "@", "file:", "/etc/passwd", "\ufeff", "\n", "\u2028", "--hash=sha256:", ZEROS, "git+https://",
     "h/x", "https://", "#sha256=", ";", "os_name == ", "'", '"', "==", "===", "1.0", "[", "]", " ", "..", "%2e",
     "${HOME}", "\\"]
)  # fmt: skip
WRITTEN = re.compile(
    r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\[[a-z0-9,-]+\])?"
    r"( @ (git\+)?https://[^\s$\\]+|[<>=!~][^\s$\\/]*)?( ; [^\n$\\]+)?( --hash=sha\d+:[0-9a-f]+)*"
)


@settings(max_examples=3000, deadline=None)
@given(st.lists(st.one_of(_PIECES, _CHARACTERS), max_size=9).map("".join))
def test_requirement_that_is_taken_has_a_place_for_all_that_is_written(line: str) -> None:
    try:
        text = parse_requirement(line).text
    except ValueError:
        return
    assert WRITTEN.fullmatch(text), text
    assert set(text) <= set(string.printable) - set("\r\n\t\v\f")
    assert parse_requirement(text).text == text


def test_requirement_options_become_fields_of_the_environment() -> None:
    simple, wheels = "https://h.example/simple", "https://h.example/wheels"
    lines = [f"--extra-index-url {simple}", "six", f"-f={wheels}", "--pre"]
    for document in ({"pip": lines}, {"conda_file": {"dependencies": [{"pip": lines}]}}):
        environment = Environment.model_validate(document)
        assert environment.requirements == ["six"]
        assert (environment.extra_index_urls, environment.find_links) == ((simple,), (wheels,))
        assert environment.prereleases
        assert Environment.model_validate(environment.model_dump(mode="json")) == environment
    chosen = Environment.model_validate({"pip": ["-i https://h.example/own"]})
    assert chosen.index_url == "https://h.example/own"
    assert Environment.model_validate({"pip": ["six # why \\", "x"]}).requirements == ["six", "x"]
    with pytest.raises(ValueError, match="two indexes"):
        Environment.model_validate({"pip": ["-i https://h.example/a"], "index_url": "https://h.example/b"})


@pytest.mark.parametrize(
    "url",
    ["http://h.example/simple", "file:///etc", "https://u:p@h.example/s", "https://h.example/a/../b", "https://h/%2E%2e/x",
     "https://h/$HOME", "https:///x", "/etc", "https://h example/x", "https://h/a%2fb", "https://h\\@x/y", "https://\uff48/x"],
)  # fmt: skip
def test_index_url_is_one_with_https_and_nothing_else(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|https"):
        checked_index_url(url)


def test_requirement_names_hosts_that_an_operator_can_list() -> None:
    environment = Environment.model_validate(
        {"pip": [f"x @ https://a.example:8443/x.whl#sha256={ZEROS}", f"y @ git+https://b.example/y@{COMMIT}"],
         "extra_index_urls": ["https://c.example/simple"]}
    )  # fmt: skip
    assert set(environment.urls_elsewhere([]).values()) == {"pip", "extra_index_urls"}
    assert len(environment.urls_elsewhere(["a.example", "b.example"])) == 2, "a port is part of what is listed"
    assert environment.urls_elsewhere(["a.example:8443", "b.example", "c.example"]) == {}
    assert environment.urls_elsewhere(["*"]) == {}


def test_requirement_of_a_job_of_an_earlier_release_is_read_and_installed_by_nobody() -> None:
    """Its record can still be shown; a node that would build its environment says what is wrong."""
    record = JobRecord(
        job_id="job_0123456789abcdefghij", submitted=0.0, code="", places=Places(roots=[]),
        spec={"entry_script": "a.py", "code": "/x", "inputs": {"a": "/a"},
              "environment": {"pip": ["six", "git+https://h.example/x@main", "-e ."], "conda_file": {}}},
    )  # fmt: skip
    spec = record.job_spec()
    assert spec.environment.pip == ("six", "git+https://h.example/x@main", "-e .")
    assert spec.environment.is_own
    assert named(spec, record.job_id).environment == spec.environment
    with pytest.raises(ValueError, match=r"git.https:"):
        recipes_of(spec.environment, "anna")
