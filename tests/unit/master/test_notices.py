"""Notices of the end of a job: where they go, what they say, and that none is forgotten or sent unsigned."""

from __future__ import annotations

import base64
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.ids import new_job_id
from parallelrun_core.layout import outbox_of
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.spec.notify import checked_url
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.destinations.notices import delivery, sending
from parallelrun_master.destinations.notices.delivery import NoticeDelivery, NoticeOrder, order_of
from parallelrun_master.destinations.notices.message import KeyUnusable, headers, key_of
from parallelrun_master.destinations.notices.sending import NotDelivered, post
from parallelrun_master.outbox.delivery import GIVE_UP_S, pause_s
from parallelrun_master.outbox.entries import attempts_of, enqueue, owed, taken
from parallelrun_master.outbox.watch import Watch
from parallelrun_master.policy.notices import Allowed, key_file, refusal
from parallelrun_master.settings import MasterSettings
from tests.webhook import KEY, Receiver

LOOPBACK = "127.0.0.0/8"


@pytest.mark.parametrize(
    "url, why",
    [
        ("ftp://example.com/", "must be a URL such as"),
        ("https:///hook", "must be a URL such as"),
        ("https://user:secret@example.com/", "must not have credentials"),
        ("https://example.com/#part", "must not have a part after"),
        ("https://example.com/a b", "must be a URL such as"),
        ("https://example.com:port/", "must be a URL such as"),
        ("https://example.com:65536/", "must be a URL such as"),
        ("http://169.254.169.254/latest/meta-data", "no notice is sent to"),
        ("http://[fe80::1]/", "no notice is sent to"),
        ("http://[::ffff:169.254.169.254]/", "no notice is sent to"),
        ("http://[64:ff9b::a9fe:a9fe]/", "no notice is sent to"),
        ("http://[fd00:ec2::254]/", "no notice is sent to"),
        ("http://0.0.0.0/", "no notice is sent to"),
    ],
)
def test_what_can_not_be_told_is_refused_when_the_job_is_submitted(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        checked_url(url)


@pytest.mark.parametrize("url", ["https://example.com/hook?a=b", "http://hooks:8000", "https://[2606:4700::1]:444/x"])
def test_other_urls_are_fine(url: str) -> None:
    assert checked_url(url) == url


@pytest.mark.parametrize(
    "host, address, allow, is_allowed",
    [
        ("example.com", "93.184.216.34", "", True),
        ("example.com", "2606:4700::1111", "", True),
        ("example.com", "10.0.0.7", "", False),
        ("example.com", "127.0.0.1", "", False),
        ("example.com", "::1", "", False),
        ("example.com", "::ffff:10.0.0.7", "", False),
        ("example.com", "10.0.0.7", "10.0.0.0/8", True),
        ("example.com", "::ffff:10.0.0.7", "10.0.0.0/8", True),
        ("hooks.example.com", "10.0.0.7", "hooks.example.com", True),
        ("hooks.example.com", "10.0.0.7", "*.example.com", True),
        ("hooks.example.com.evil.org", "10.0.0.7", "*.example.com", False),
        ("example.com", "10.0.0.7", "*.example.com", False),
        ("example.com", "10.0.0.7", "*", True),
        ("example.com", "169.254.169.254", "*", False),
        ("example.com", "169.254.169.254", "example.com", False),
        ("example.com", "168.63.129.16", "*", False),
        ("example.com", "fe80::1%eth0", "*", False),
        ("example.com", "169.254.1.1", "169.254.1.0/24", True),
    ],
)
def test_where_a_name_leads_decides(host: str, address: str, allow: str, is_allowed: bool) -> None:
    assert (refusal(host, address, Allowed.parse(allow)) == "") == is_allowed


def test_an_allowance_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a network, a host"):
        Allowed.parse("10.0.0.0/8, https://example.com/")


def test_pauses_grow_to_an_hour_and_end_after_a_day() -> None:
    assert [pause_s(count, 0.0, 0.5) for count in (1, 2, 3, 30)] == [1.0, 2.0, 4.0, 3600.0]
    assert pause_s(1, 0.0, 0.0) == 0.75
    assert pause_s(30, GIVE_UP_S, 0.5) is None


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of https://www.standardwebhooks.com."""
    key = key_of(b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    given = headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', key)
    assert given["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_keys_are_texts_or_base64_and_never_empty() -> None:
    assert key_of(b"text\r\n") == b"text"
    assert key_of(b"whsec_" + base64.b64encode(b"key")) == b"key"
    for unusable in (b"", b"\n", b"whsec_", b"whsec_?"):
        with pytest.raises(KeyUnusable):
            key_of(unusable)


def send(url: str, allow: str = LOOPBACK) -> int:
    return post(url, {"webhook-id": "1"}, b"{}", Allowed.parse(allow))


def test_only_what_is_accepted_counts_and_nobody_is_sent_elsewhere() -> None:
    with Receiver() as other, Receiver(307, location=other.url) as redirecting, Receiver(204, 503, 410) as receiver:
        assert send(receiver.url) == 204
        with pytest.raises(NotDelivered, match="503") as busy:
            send(receiver.url)
        with pytest.raises(NotDelivered, match="410") as gone:
            send(receiver.url)
        with pytest.raises(NotDelivered, match="307"):
            send(redirecting.url)
        assert (busy.value.is_final, gone.value.is_final) == (False, True)
        assert receiver.told[0].path == "/hook?of=jobs"
        assert not other.told


def test_a_receiver_that_answers_byte_by_byte_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, the answer never does."""
    monkeypatch.setattr(sending, "TOTAL_S", 0.3)
    has_gone = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                while not has_gone.wait(0.02):
                    connection.sendall(b"H")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(NotDelivered, match=r"not answered within 0.3 s"):
                send(f"http://127.0.0.1:{server.getsockname()[1]}/")
        finally:
            has_gone.set()
            thread.join()


def test_what_is_not_allowed_is_not_even_connected_to() -> None:
    with Receiver() as receiver:
        with pytest.raises(NotDelivered, match="which is not public"):
            send(receiver.url, allow="")
        assert not receiver.told


def test_a_name_that_leads_to_metadata_is_refused_whatever_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it leads to other addresses, too."""
    with Receiver() as receiver:
        port = int(receiver.url.split(":")[2].partition("/")[0])
        answers = [(socket.AF_INET, 1, 6, "", (address, port)) for address in ("127.0.0.1", "169.254.169.254")]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)
        with pytest.raises(NotDelivered, match="no notice is sent to"):
            send(f"http://hooks.example.com:{port}/", allow="*, hooks.example.com")
        assert not receiver.told


class Ended:
    """A job that has ended, whose end is owed to somebody."""

    def __init__(self, root: Path, url: str, *, is_recorded: bool = True, **notify: str) -> None:
        self.root = root
        self.job_id = new_job_id()
        self.name = f"{self.job_id}.0"
        self.folder = JobFolder(root, self.job_id)
        spec: dict[str, Any] = {"name": "words", "notify": {"url": url, **notify}}
        self.folder.create(JobRecord(job_id=self.job_id, submitted=1.0, code="", spec=spec))
        enqueue(outbox_of(root, "notices"), self.job_id, 0)
        if is_recorded:
            self.record()

    def record(self) -> None:
        self.folder.conclude(
            JobResult(
                job_id=self.job_id,
                state=JobState.FAILED,
                started=2.0,
                ended=3.5,
                progress=Progress(scheduled=4, done=3, failed=1),
                failure=JobFailure(code="ERROR_THRESHOLD", summary="too many"),
            )
        )

    def deliver(self, now: float = 100.0, secrets_dir: Path | None = None) -> None:
        settings = MasterSettings(root=self.root, secrets_dir=str(secrets_dir or ""), notify_allow=LOOPBACK)
        order = msgspec.json.decode(order_of(settings, [self.name], now), type=NoticeOrder)
        NoticeDelivery(order, ProcessSecrets(order.secrets_dir)).run()

    @property
    def said(self) -> str:
        return (self.folder.logs / "sys" / "notices.txt").read_text()


@pytest.fixture
def secrets_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    (folder / "webhooks" / "127.0.0.1").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "webhooks" / "127.0.0.1" / "pager").write_text(KEY + "\n")
    return folder


def test_a_notice_says_how_the_job_has_ended_and_is_signed(tmp_path: Path, secrets_dir: Path) -> None:
    with Receiver() as receiver:
        job = Ended(tmp_path, receiver.url, secret="pager")
        job.deliver(secrets_dir=secrets_dir)
        job.deliver(secrets_dir=secrets_dir)

    (told,) = receiver.told
    assert told.is_signed()
    assert told.headers["webhook-id"] == job.name
    assert told.said["type"] == "job.failed"
    data = told.said["data"]
    assert (data["job_id"], data["name"], data["ended"]) == (job.job_id, "words", "1970-01-01T00:00:03.500Z")
    assert data["failure"] == {"code": "ERROR_THRESHOLD", "summary": "too many"}
    assert data["progress"]["failed"] == 1
    assert owed(outbox_of(tmp_path, "notices")) == []
    assert "attempt 1: delivered, answered with 200" in job.said


def test_what_nobody_accepts_is_sent_again_when_it_is_due(tmp_path: Path) -> None:
    with Receiver(500, 200) as receiver:
        job = Ended(tmp_path, receiver.url)
        job.deliver(now=100.0)
        attempts = attempts_of(outbox_of(tmp_path, "notices"), job.name)
        assert attempts is not None
        assert attempts.count == 1
        assert 100.0 <= attempts.first_at < 105.0
        job.deliver(now=attempts.next_at - 60)
        assert len(receiver.told) == 1
        job.deliver(now=attempts.next_at)

    first, second = receiver.told
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert owed(outbox_of(tmp_path, "notices")) == []
    assert "not delivered: it was answered with 500; again in" in job.said


def test_an_attempt_is_written_down_before_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies of what it sends must not send that at once, again and again, for ever."""

    def dies(*_: object) -> int:
        raise KeyboardInterrupt

    job = Ended(tmp_path, "http://127.0.0.1/")
    monkeypatch.setattr(delivery, "post", dies)
    for attempt in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            job.deliver(now=100.0 * attempt)
        attempts = attempts_of(outbox_of(tmp_path, "notices"), job.name)
        assert attempts is not None
        assert (attempts.count, attempts.next_at > 100.0 * attempt + 0.5) == (attempt, True)
        job.deliver(now=100.0 * attempt)  # not yet


def test_after_a_day_or_when_it_is_never_wanted_a_notice_is_given_up(tmp_path: Path) -> None:
    with Receiver(500) as failing, Receiver(410) as gone:
        late, unwanted = Ended(tmp_path, failing.url), Ended(tmp_path, gone.url)
        late.deliver(now=100.0)
        late.deliver(now=200.0 + GIVE_UP_S)
        unwanted.deliver()

    assert owed(outbox_of(tmp_path, "notices")) == []
    assert late.said.splitlines()[-1].endswith("given up")
    assert unwanted.said.splitlines()[-1].endswith("given up")


def test_a_notice_that_is_to_be_signed_is_never_sent_unsigned(tmp_path: Path, secrets_dir: Path) -> None:
    with Receiver() as receiver:
        job = Ended(tmp_path, receiver.url, secret="other")
        job.deliver(secrets_dir=secrets_dir)
        assert owed(outbox_of(tmp_path, "notices")) == [job.name]
        assert "webhooks/127.0.0.1/other" in job.said
        Ended(tmp_path, receiver.url, secret="pager").deliver()
        assert not receiver.told
    assert KEY not in job.said


@pytest.mark.parametrize(
    "host, folder",
    [
        ("Hooks.Example.COM.", "hooks.example.com"),
        ("2606:4700:0::1", "2606:4700::1"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_a_key_is_meant_for_a_host(host: str, folder: str) -> None:
    assert key_file(host, "pager") == f"{folder}/pager"


@pytest.mark.parametrize("host", ["..", ".", "", "a/b", "../a"])
def test_no_key_is_outside_of_the_folder_of_its_host(host: str) -> None:
    with pytest.raises(ValueError, match="not appear to be"):
        key_file(host, "pager")


def test_the_key_of_one_receiver_signs_nothing_for_another(tmp_path: Path, secrets_dir: Path) -> None:
    with Receiver() as receiver:
        job = Ended(tmp_path, receiver.url.replace("127.0.0.1", "localhost"), secret="pager")
        job.deliver(secrets_dir=secrets_dir)
        assert "put it into" in job.said
        assert not receiver.told


def test_first_what_is_due_for_longest_and_of_one_job_the_earlier_end(tmp_path: Path) -> None:
    watch = Watch(outbox_of(tmp_path, "notices"), cast("Any", None), "", lambda names, now: b"")
    one, other = sorted((new_job_id(), new_job_id()))
    names = [f"{other}.0", f"{one}.10", f"{one}.2", f"{one}.1"]
    watch._due = {f"{one}.1": 7.0}
    assert sorted(names, key=watch._place_of) == [f"{one}.2", f"{one}.10", f"{other}.0", f"{one}.1"]


def test_an_end_that_is_not_recorded_yet_is_waited_for(tmp_path: Path) -> None:
    with Receiver() as receiver:
        job = Ended(tmp_path, receiver.url, is_recorded=False)
        job.deliver(now=100.0)
        assert not receiver.told
        job.record()
        job.deliver(now=110.0)
        assert len(receiver.told) == 1


def test_two_masters_send_a_notice_once_and_half_a_note_is_none(tmp_path: Path) -> None:
    with Receiver() as receiver:
        job = Ended(tmp_path, receiver.url)
        with taken(outbox_of(tmp_path, "notices"), job.name) as held:
            assert held is not None
            job.deliver()
            assert not receiver.told
        (tmp_path / "notices" / job.name).write_text('{"count": 1, "fir')
        job.deliver()
        assert len(receiver.told) == 1


def test_a_job_that_can_not_be_read_is_asked_for_again_later(tmp_path: Path) -> None:
    """A process that ended for it would be started again each second, and others would wait for nothing."""
    with Receiver() as receiver:
        job = Ended(tmp_path, receiver.url)
        record = job.folder.layout.record.read_bytes()
        job.folder.layout.record.write_bytes(b"{")
        job.deliver(now=100.0)
        attempts = attempts_of(outbox_of(tmp_path, "notices"), job.name)
        assert attempts is not None
        assert (attempts.count, attempts.next_at > 1000) == (0, True)
        job.folder.layout.record.write_bytes(record)
        job.deliver(now=attempts.next_at)
        assert len(receiver.told) == 1


def test_the_notice_of_a_job_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    with Receiver() as receiver:
        job = Ended(tmp_path, receiver.url)
        job.folder.layout.record.unlink()
        job.deliver()
        assert (owed(outbox_of(tmp_path, "notices")), receiver.told) == ([], [])
