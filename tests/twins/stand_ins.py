"""Functions that stand for one of the product, without the mechanism that a twin disables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

_MOMENT_S: Final = 0.001
"""In which somebody else may swap what was checked by its name."""


def without_its_uploads(machine: Any, *answered: Any) -> None:
    """Commit an outcome at once."""
    from parallelrun_agent.policy.job_machine import JobMachine

    JobMachine._keep(machine, *answered)


def with_all_links_followed(path: bytes, *_: object) -> bytes:
    """Resolve a path as anybody would."""
    return os.path.realpath(path)


def whatever_is_there(upload: Any, condition: Any) -> None:
    """Complete an upload without a condition."""
    parts = [{"ETag": tag, "PartNumber": number} for number, tag in enumerate(upload._tags, 1)]
    where = {**upload._where, "UploadId": upload._upload}
    upload._client.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})


def failed_at_once(stager: Any, file: Any, error: Any) -> None:
    """Ask a store no second time."""
    from parallelrun_core.wire.outcome import Failure

    with stager._lock:
        stager._ended(file, 0, Failure("INPUT_UNREADABLE", f"{file.url} can't be read: {error}"))


def without_retries() -> Any:
    """Have the library of the stores ask only once, too."""
    from datetime import timedelta

    return {"max_retries": 0, "retry_timeout": timedelta(0)}


def as_rq_does(entry: Any) -> Any:
    """Run whatever an entry names."""
    from rq.job import Job

    return Job.perform(entry)


def ended_as_rq_does(*args: Any) -> Any:
    """End an entry, of which everything must be there."""
    from rq import Worker

    return Worker.handle_job_success(*args)


def failed_as_rq_does(*args: Any, **options: Any) -> Any:
    """Note that an entry has failed, whoever has it now."""
    from rq import Worker

    return Worker.handle_job_failure(*args, **options)


def everything(_: Any, variables: Mapping[str, str]) -> dict[str, str]:
    return dict(variables)


def opened_whatever_it_is(path: str | bytes) -> Any:
    return open(path, "rb", buffering=0)


def agents_own(*_: Any) -> Any:
    from parallelrun_agent.users.worker_user import SAME_USER

    return SAME_USER


def building_carelessly(how: str) -> Callable[[], list[str]]:
    """Build environments without a care for what packages bring."""
    import sys

    return lambda: [sys.executable, str(Path(__file__).with_name("careless_build.py")), how]


def with_values_before(text: str, inputs: Any) -> str:
    """Set the variables of a command's values by the text of the command."""
    from parallelrun_core.spec.expressions import without_absent_parts

    values = {name: each.value for name, each in inputs.items() if hasattr(each, "value")}
    lines = [f"AZURE_ML_INPUT_{name}={value}\n" for name, value in values.items()]
    return "".join(lines) + without_absent_parts(text, inputs)


def taking_over_variables(fields: Any) -> Any:
    from parallelrun_core.wire.masking import Mask

    os.environ.update(fields.get("environment_variables", {}))
    return Mask(fields)


def all_that_was_said(error: BaseException, otherwise: str = "") -> str:
    return str(error) or otherwise


def is_marked_inside(folder: Path) -> bool:
    return (folder / "ready").exists() or folder.with_suffix(".ready").exists()


def of_a_beginning(key: str) -> str:
    """Call a key by what is left of it after 128 characters are all that counts."""
    import hashlib

    return hashlib.sha256(key[:128].encode()).hexdigest()


def as_itself(*_: Any) -> Any:
    return nullcontext()


def as_uvicorn_does(protocol: Any) -> None:
    """Parse and drop what comes after an answer."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    H11Protocol.on_response_complete(protocol)
    protocol._note(is_asking=False)


async def in_any_thread(lane: Any, key: Any, read: Callable[[], Any]) -> Any:
    """One more thread for each list."""
    import asyncio

    return await asyncio.to_thread(read)


def looked_up_anew(names: Any, folder: int, first: str) -> Any:
    """Look at the whole folder for each page."""
    from parallelrun_api.views.folder_names import _smallest, _Stretch

    here = _smallest(folder, first, names._held)
    return _Stretch(first, here, len(here) < names._held, (0, 0))


def decided_by_each(fires: Any, fire: Any, due: Any) -> Any:
    """Write down what one decides oneself, whatever others have."""
    from parallelrun_core.schedules.records import stamp

    fires._fires.put(stamp(due), fire)
    return fire


def by_the_cookie_alone(sessions: Any, _: str, headers: Any) -> str:
    session = sessions.of(headers)
    return str(session.token_name) if session is not None else ""


def for_everybody(sessions: Any, code: str, headers: Any) -> Any:
    """Begin a session with a code, whoever has used it."""
    from parallelrun_api.http.sessions import _hash

    entry = sessions._codes[_hash(code)]
    return sessions.new_cookie(entry.token_name, headers, entry.until)


def without_its_end(url: str) -> str:
    return url.rstrip("/")


def as_it_came(name: str) -> str:
    return name


def opened_by_name(_: Any, at: int, name: str, path: str, flags: int = 0) -> int | None:
    """Open whatever has the name after a moment."""
    import os
    import time

    time.sleep(_MOMENT_S)
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError:
        return None


def opened_after_a_moment(path: Any) -> Any:
    """Open an ordinary file a moment after its path was checked."""
    import time

    from parallelrun_core.untrusted.paths import open_ordinary

    time.sleep(_MOMENT_S)
    return open_ordinary(path)


def created_by_name(folder: Path, _: Any) -> int:
    """Create a folder by its name, and open whatever has it after a moment."""
    import os
    import time

    folder.mkdir(parents=True, exist_ok=True)
    time.sleep(_MOMENT_S)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def without_what_leads_up(text: str) -> tuple[str, ...]:
    """Take a name in a zip for another one, below its folder."""
    return tuple(part for part in text.split("/") if part not in ("", ".."))


def members_as_they_are(archive: Any, _: Any) -> Iterator[tuple[tuple[str, ...], int, Any]]:
    """Unpack all of a zip, whatever it is and however much, below its folder."""
    for member in archive.infolist():
        with archive.open(member) as file:
            yield without_what_leads_up(member.filename), 0, file


def line_as_it_came(line: Any) -> Any:
    """Look at how a line begins, and write it as it is."""
    from parallelrun_core.spec.requirements import ParsedRequirement

    text = line.split(" #")[0].strip()
    if not text or text.startswith(("-", ".", "/", "file:")) or any(ord(char) < 32 for char in text):
        raise ValueError(f"{text!r} is not a requirement")
    return ParsedRequirement(text)


def some_job_id(*_: Any) -> Any:
    from parallelrun_core.ids import new_job_id

    return new_job_id()


def bounds_of_jobs(context: Any, _: Any) -> Any:
    """Read whatever jobs may read."""
    from parallelrun_core.checks.data_preview import Bounds

    settings = context.settings
    return Bounds(root=str(settings.root), places=settings.places, memory_bytes=2 << 30)


def names_that_are_there(schema: str, _: str) -> dict[str, Any]:
    """Take a schema for one as it should be."""
    import json

    return {field["name"]: field["type"] for field in json.loads(schema)["fields"]}


def replacing(path: Path | str, data: bytes, **_: Any) -> None:
    Path(path).write_bytes(data)


def wherever_it_says(place: str, response: Any, _: str) -> str:
    """Follow every redirect."""
    from urllib.parse import urljoin

    return urljoin(place, str(response.headers["Location"]))


def as_if_run(stall: Any, now: float) -> None:
    """Take what is published for what is run."""
    stall.moved(now)
    stall.has_run()
