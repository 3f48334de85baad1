// Why a job has failed, beyond the one sentence: the first cause, what to do, and where to read on.

import type { JSX } from "preact";
import type { Job, JobFailure } from "../../api/types";
import { Prose } from "../../parts/prose";
import { ended } from "../../words/sentence";
import { linkToLog } from "./links";

export function Cause({ job, failure }: { job: Job; failure: JobFailure }): JSX.Element {
  return (
    <>
      {failure.first_cause && failure.first_cause !== failure.summary && (
        <p class="first-cause">
          First cause: {failure.error_category && <span class="chip failed">{failure.error_category}</span>}{" "}
          <code>{failure.first_cause.replace(`${failure.error_category}: `, "")}</code>
        </p>
      )}
      {failure.hint && (
        <p>
          <b>What to do:</b> <Prose text={ended(failure.hint)} />
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
