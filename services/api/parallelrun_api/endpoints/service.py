"""Accepts endpoints, deployments and invocations: submissions of jobs that are stored already, but for their data."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from parallelrun_api.definitions import readable
from parallelrun_api.people.person import CURRENT, is_seen
from parallelrun_api.submission.checks import PathChecks
from parallelrun_api.submission.code import code_is_whole, store_code, store_steps_code
from parallelrun_api.submission.step_problems import StepProblems
from parallelrun_api.submission.submissions import Accepted, Submissions
from parallelrun_api.submission.upload import SubmittedForm
from parallelrun_core.answers import endpoints as answers
from parallelrun_core.answers.answer import answer_of, rfc3339
from parallelrun_core.azure.findings import Note
from parallelrun_core.endpoints.document import DeploymentReading, checked_name, read_deployment, read_endpoint
from parallelrun_core.endpoints.invoking import job_document, read_invocation
from parallelrun_core.endpoints.records import Deployment, Endpoint, Slot
from parallelrun_core.endpoints.store import EndpointStore
from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.intake.reading import Reading, read_job
from parallelrun_core.names.assets import Names, code_called
from parallelrun_core.problems import At, Problems
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.pipeline_steps import known_part, leaf_steps, with_steps
from parallelrun_core.wire.masking import masked_spec

_ORIGIN_NOTE: Final = re.compile(r"made by the deployment '[^']*' of the batch endpoint '[^']*'")


def origin_note(endpoint: str, deployment: str) -> str:
    """Return the note on a job that says which deployment has made it."""
    return f"made by the deployment {deployment!r} of the batch endpoint {endpoint!r}"


def is_made_by(notes: Iterable[str], endpoint: str = "", deployment: str = "") -> bool:
    """Return whether a job with these notes was made by a batch endpoint: by any, by one, or by one of its
    deployments."""
    if not endpoint:
        return any(_ORIGIN_NOTE.fullmatch(note) for note in notes)
    if deployment:
        return origin_note(endpoint, deployment) in notes
    before, _, after = origin_note(endpoint, "|").partition("|")
    return any(note.startswith(before) and note.endswith(after) for note in notes)


class EndpointService:
    """Batch endpoints of a server. Safe to share between threads."""

    def __init__(self, root: Path, submissions: Submissions, checks: PathChecks, *, names: Names | None) -> None:
        self._root = root
        self._submissions = submissions
        self._checks = checks
        self._names = names
        self._store = EndpointStore(root, shows=is_seen)

    def all(self) -> list[answers.BatchEndpoint]:
        """All endpoints that the person of the request may see, by name; one that can't be read is logged."""
        endpoints = readable("endpoint", self._store.names(), self.get)
        return [each for each in endpoints if CURRENT.get().may_see(each.owner)]

    def get(self, name: str) -> answers.BatchEndpoint:
        """Return one endpoint. Raises NotFound."""
        endpoint = self._store.get(name)
        return answer_of(
            answers.BatchEndpoint,
            endpoint,
            deployments=self._store.deployments(name),
            created=rfc3339(endpoint.made),
            modified=rfc3339(endpoint.at),
        )

    def put(self, name: str, document: object) -> tuple[answers.BatchEndpoint, bool]:
        """Define an endpoint, or define it anew, durably; returns it, and whether it is new.

        Raises:
            InvalidInput: something is wrong with it.
        """
        reading, now = read_endpoint(document, name=name), time.time()
        try:
            last = self._store.get(name)
        except NotFound:
            last = None
        default = reading.default_deployment
        endpoint = Endpoint(
            name=name,
            made=last.made if last else now,
            owner=last.owner if last else CURRENT.get().owner,
            at=now,
            default_deployment=default if default is not None else last.default_deployment if last else "",
            display_name=reading.display_name,
            description=reading.description,
            tags=reading.tags,
        )
        if endpoint.default_deployment and endpoint.default_deployment not in self._store.deployments(name):
            hint = "define the deployment first"
            message = f"there is no deployment {endpoint.default_deployment!r}"
            raise InvalidInput.at("/defaults/deployment_name", message, hint)
        self._store.put(endpoint)
        return self.get(name), last is None

    def remove(self, name: str) -> None:
        """Forget an endpoint with its deployments; their jobs stay. Raises NotFound."""
        self._store.remove(name)

    def deployments(self, endpoint: str) -> list[answers.BatchDeployment]:
        """The deployments of an endpoint, by name. Raises NotFound."""
        self._store.get(endpoint)
        return [self.deployment(endpoint, name) for name in self._store.deployments(endpoint)]

    def deployment(self, endpoint: str, name: str) -> answers.BatchDeployment:
        """Return one deployment. Raises NotFound."""
        return _shown(self._store.deployment(endpoint, name))

    def put_deployment(
        self, endpoint: str, name: str, document: object, code: IO[bytes] | None, *, is_default: bool
    ) -> tuple[answers.BatchDeployment, bool]:
        """Define a deployment, or define it anew, durably; returns it, and whether it is new.

        Args:
            code: a zip of its code; None: the document names a folder.
            is_default: invoke it when a request names none.

        Raises:
            NotFound: there is no such endpoint.
            InvalidInput: something is wrong with it.
        """
        stored_endpoint, now = self._store.get(endpoint), time.time()
        last = name in self._store.deployments(endpoint)
        reading = self._read(document, endpoint, name)
        job = self._job(reading.reading, code)
        deployment = Deployment(
            name=name,
            endpoint=endpoint,
            made=self._store.deployment(endpoint, name).made if last else now,
            at=now,
            type="pipeline" if isinstance(reading.reading.spec, PipelineSpec) else "model",
            job=job,
            slots=reading.slots,
            notes=self._submissions.notes(reading.reading, job),
            description=reading.description,
            tags=reading.tags,
        )
        self._store.put_deployment(deployment)
        if is_default:
            self._store.put(msgspec.structs.replace(stored_endpoint, default_deployment=name, at=now))
        return _shown(deployment), not last

    def remove_deployment(self, endpoint: str, name: str) -> None:
        """Forget a deployment; its jobs stay. Raises NotFound."""
        self._store.remove_deployment(endpoint, name)
        stored_endpoint = self._store.get(endpoint)
        if stored_endpoint.default_deployment == name:
            self._store.put(msgspec.structs.replace(stored_endpoint, default_deployment="", at=time.time()))

    def invoke(
        self, name: str, document: object, key: str, traceparent: str = "", *, notes: Iterable[Note] = ()
    ) -> Accepted:
        """Make a job of a deployment and what is given, durably. It is not yet registered.

        Args:
            key: calling again with the same one and the same document gives the same job.
            traceparent: the span of whoever calls, as the header has it.
            notes: on what the document was made of.

        Raises:
            NotFound: there is no such endpoint or deployment.
            InvalidInput, Conflict: it can't be accepted.
            KeyReused: the key was used for something else.
            RedisError: Redis is away; nothing has happened.
        """
        endpoint, invocation = self._store.get(name), read_invocation(document)
        called = invocation.deployment_name or endpoint.default_deployment
        if not called:
            listed = ", ".join(self._store.deployments(name))
            message = "the endpoint has no default deployment, and the request names none"
            todo = f"it has {listed}" if listed else "make one: `parallelrun batch-deployment create --set-default`"
            raise InvalidInput.at("/deployment_name", message, todo)
        deployment = self._store.deployment(name, called)
        reading = read_job(job_document(deployment, invocation, names=self._names), names=self._names)
        origin = Note("", origin_note(name, called))
        all_notes = (*(Note("", note) for note in deployment.notes), *reading.notes, *notes, origin)
        request_text = json.dumps(["invoke", name, document], sort_keys=True, default=str)
        digest = hashlib.sha256(request_text.encode()).hexdigest()
        upload = SubmittedForm(reading=replace(reading, notes=all_notes), code=None, sha256=digest)
        return self._submissions.accept(upload, key, traceparent)

    def _read(self, document: object, endpoint: str, name: str) -> DeploymentReading:
        """A deployment in Azure ML's form, or as a client sends it that has read the files beside it."""
        if not isinstance(document, dict) or "job" not in document:
            return read_deployment(document, name=name, endpoint=endpoint, names=self._names)
        fields = {"name", "endpoint_name", "description", "tags", "job", "slots"}
        for field in document:
            if field not in fields:
                raise InvalidInput.at(f"/{field}", "unknown field", f"known are {', '.join(sorted(fields))}")
        try:
            slots = msgspec.convert(document.get("slots") or {}, dict[str, Slot])
            tags = msgspec.convert(document.get("tags") or {}, dict[str, str])
        except msgspec.ValidationError as error:
            raise InvalidInput.at("/slots", str(error)) from error
        problems = Problems()
        name = checked_name(document.get("name"), name, At("/name", problems))
        endpoint = checked_name(document.get("endpoint_name"), endpoint, At("/endpoint_name", problems))
        problems.check()
        return DeploymentReading(
            name=name,
            endpoint=endpoint,
            description=str(document.get("description") or ""),
            tags=tags,
            reading=read_job(document["job"], names=self._names),
            slots=slots,
        )

    def _job(self, reading: Reading, code: IO[bytes] | None) -> dict[str, Any]:
        """Return what is kept of the job: its code is in the store, and what is known of its paths is checked."""
        spec = reading.spec
        if isinstance(spec, JobSpec):
            with reading.locating_problems():
                self._checks.check(known_part(spec), has_zip=code is not None)
                snapshot = store_code(self._root, spec, code, self._checks.rule())
            whole = {"code": code_called(snapshot), **code_is_whole(spec)}
            return {**spec.model_dump(mode="json", exclude_unset=True), **whole}
        with reading.locating_problems():
            steps = leaf_steps(spec)
        problems = StepProblems(reading)
        for step in steps:
            with problems.of(step.names):
                self._checks.check_step(step.checkable_spec(), has_zip=code is not None)
        problems.check()
        snapshots = store_steps_code(self._root, steps, code, problems, self._checks.rule())
        return with_steps(
            spec.model_dump(mode="json", exclude_unset=True),
            lambda names, step: {**step, "job": {**step["job"], "code": code_called(snapshots[names])}},
        )


def _shown(deployment: Deployment) -> answers.BatchDeployment:
    return answer_of(
        answers.BatchDeployment,
        deployment,
        inputs={
            name: answers.DeploymentInput(type=slot.type, default=slot.default)
            for name, slot in deployment.slots.items()
        },
        created=rfc3339(deployment.made),
        modified=rfc3339(deployment.at),
        spec=masked_spec(deployment.job),
    )
