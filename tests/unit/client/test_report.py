"""`job report`: one small file that shows everything, fetches nothing, and in which words stay words."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from parallelrun.models import Job, Step
from parallelrun.progress.markup import element
from parallelrun.report.charts import seconds, share
from parallelrun.report.facts import Facts, thinned
from parallelrun.report.page import page
from parallelrun_core.answers.pictures import Throughput, Tiles, Timeline
from tests.unit.client.slow_job import facts

HOSTILE = (
    "</style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    " \x1b[2J\u202e &amp; {{x}} <!-- ]]> javascript:alert(1)"
)
MOST_BYTES = 1_000_000


class Read(HTMLParser):
    """The elements, attributes and words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update((name, value or "") for name, value in attrs)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update((name, value or "") for name, value in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def headings(text: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_a_job_of_a_million_mini_batches_is_one_small_file_with_everything() -> None:
    text = page(facts())

    assert len(text.encode()) < MOST_BYTES / 2
    assert headings(text) == [
        "Why it failed", "What to change", "Where the time went", "Throughput", "Mini-batches", "Workers", "Errors",
        "Slowest tries", "Nodes", "Settings",
    ]  # fmt: skip
    words = " ".join(Read(text).words)
    for said in (
        "5,880 items have failed",
        "1,000,000",
        "--set mini_batch_size=500",
        "saves 14.0 min",
        "2,641 times",
        "and 24 more workers",
        "given: /error_threshold, instead of -1",
        "mini-batches 0 to 1,697",
    ):
        assert said in words, said


def test_what_others_say_stays_text() -> None:
    plain, hostile = (Read(page(facts(name=words, words=words))) for words in ("harmless", HOSTILE))

    assert hostile.open == []
    assert hostile.tags == plain.tags
    assert "script" not in hostile.tags
    assert {name for name, _ in hostile.attributes} == {name for name, _ in plain.attributes}
    assert not {name for name, _ in hostile.attributes} & {"src", "href", "onerror", "onclick", "onload"}
    everything = "".join(hostile.words) + "".join(value for _, value in hostile.attributes)
    assert "<script>alert(1)</script>" in everything
    assert not {"\x1b", "\u202e"} & {*everything}


def test_nothing_is_fetched_and_no_script_may_run() -> None:
    text = page(facts())

    assert "default-src 'none'; style-src 'unsafe-inline'" in {value for _, value in Read(text).attributes}
    assert not re.search(r"url\(|@import|<link|<script|<iframe|<base|<object|<form", text)


def test_long_words_are_cut_so_that_the_file_stays_small() -> None:
    assert len(page(facts(name="n" * 255, words="é" * 50_000)).encode()) < MOST_BYTES


@pytest.mark.parametrize("state", ["queued", "processing", "completed", "canceled"])
def test_a_job_of_which_little_is_known_has_a_report(state: str) -> None:
    text = page(Facts(job=Job(id="job_1", state=state), server="http://s", created=datetime(2026, 1, 1, tzinfo=UTC)))

    assert Read(text).open == []
    assert state in text
    assert headings(text) == []


def test_a_pipeline_has_its_steps() -> None:
    steps = [Step(name="split", state="completed", job="job_2"), Step(name="find", state="failed", why="<b>no</b>")]
    job = Job(id="job_1", type="pipeline", state="failed", steps=steps)

    text = page(Facts(job=job, server="http://s", created=datetime(2026, 1, 1, tzinfo=UTC)))

    assert headings(text) == ["Steps"]
    assert "&lt;b&gt;no&lt;/b&gt;" in text


def test_pictures_of_a_job_with_few_or_equal_mini_batches_are_fine() -> None:
    small = Tiles(
        end=2, total=2, completed=[1, 0], failed=[0, 0], running=[0, 1], waiting=[0, 0], retried=[0, 0],
        median_run_s=[0.0, None], max_run_s=[0.0, None],
    )  # fmt: skip
    nothing = Throughput(bucket_s=1.0, mini_batches=[0], items=[0], failed=[0], retried=[0], busy_workers=[0.0])
    text = page(replace(facts(), tiles=small, throughput=nothing, timeline=Timeline()))

    assert Read(text).open == []
    assert "mini-batch 1: 1 running" in text


def test_elements_escape_what_is_in_them_and_in_their_attributes() -> None:
    assert element("p", "<b>", 1.5, None, ["&", element("i", "x")], class_='a"b', aria_label=None, data_x=2.0) == (
        '<p class="a&quot;b" data-x="2">&lt;b&gt;1.5&amp;<i>x</i></p>'
    )


def test_numbers_are_short() -> None:
    given = (None, 0.0, 0.0001, 0.0123, 0.5, 59.6, 61, 600, 4000)
    assert [seconds(value) for value in given] == [
        "", "0 s", "0.1 ms", "12.3 ms", "500 ms", "59.6 s", "61.0 s", "10.0 min", "66.7 min",
    ]  # fmt: skip
    assert [share(value) for value in (None, 0.0, 0.0001, 0.034, 0.5)] == ["", "0 %", "< 0.1 %", "3.4 %", "50 %"]
    assert thinned([1.0, 5.0, 2.0, 3.0, 4.0], 3) == [5.0, 3.0, 4.0]
    assert thinned([], 3) == []
