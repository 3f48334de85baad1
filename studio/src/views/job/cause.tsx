// Why a job has failed, beyond the one sentence: the first cause, what to do, and where to read on.

import type { JSX } from "preact";
import { isOver } from "../../api/live";
import type { Job, JobFailure } from "../../api/types";
import { Cause as ErrorCause } from "../../parts/cause";
import { Prose } from "../../parts/prose";
import { firstCauseOf } from "../../words/errors";
import { counted } from "../../words/numbers";
import { ended, lostItems } from "../../words/sentence";
import { linkToLog } from "./links";

export function Cause({ job, failure }: { job: Job; failure: JobFailure }): JSX.Element {
  return (
    <>
      {failure.first_cause && failure.first_cause !== failure.summary && (
        <p class="first-cause">
          First cause: {failure.error_category && <ErrorCause category={failure.error_category} />}{" "}
          <code>{firstCauseOf(failure)}</code>
        </p>
      )}
      {failure.hint && (
        <p>
          <b>What to do:</b> <Prose text={ended(failure.hint)} />
          {job.type === "parallel" && (
            <>
              {" Then "}
              <a href={`/new?from=${job.id}&resume_from=1`}>run it again, with changes</a>.
            </>
          )}
        </p>
      )}
      {failure.traceback && (
        <details>
          <summary>Traceback</summary>
          <pre>{failure.traceback}</pre>
        </details>
      )}
      {job.steps
        .filter((step) => step.state === "failed" && step.job)
        .map((step) => (
          <p key={step.name}>
            <a href={linkToLog(step.job!, "job_result.txt")}>Open the log of {step.name}</a>
          </p>
        ))}
      {failure.log && (
        <p>
          <a href={linkToLog(job.id, failure.log)}>Open the log: {failure.log}</a>
        </p>
      )}
    </>
  );
}

/** What to do about items that have failed, where the server has no advice of its own: it depends on why they did. */
export function AfterFailures({ job }: { job: Job }): JSX.Element | false {
  const { failed, done } = job.progress;
  if (!isOver(job) || job.type === "pipeline" || job.failure?.hint || !(failed || lostItems(job))) return false;
  const kept = done ? `: that takes over the ${counted(done, "mini-batch", "mini-batches")} done` : "";
  return (
    <p>
      <b>What to do:</b> Look at <a href={`/jobs/${job.id}/mini-batches?state=failed`}>what has failed</a>. If the code
      or an input is wrong, mend it and <a href={`/new?from=${job.id}&resume_from=1`}>run it again, with changes</a>
      {kept}. If the cause has passed, as with a service that was away, retry what failed.
      {job.failure && " If so many may fail, allow more with error_threshold."}
    </p>
  );
}
