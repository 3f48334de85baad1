// Run one failed mini-batch again, into the same output. It asks first.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { send } from "../../../api/http";
import { jobPath } from "../../../api/paths";
import type { Job } from "../../../api/types";
import { Command } from "../../../parts/command";
import { Question } from "../../../parts/question";
import { go } from "../../../shell/router";

export function RetryOne({ job, id }: { job: Job; id: number }): JSX.Element {
  const [isAsked, ask] = useState(false);
  const act = (): Promise<void> =>
    send("POST", `${jobPath(job.id)}:retry`, { mini_batches: [id] }).then(() => go(`/jobs/${job.id}`));
  return (
    <>
      <button type="button" onClick={() => ask(true)}>
        Retry this one
      </button>
      {isAsked && (
        <Question title={`Retry mini-batch ${id}?`} button="Retry" act={act} onClose={() => ask(false)}>
          <p>It is run again, into the same output, with the code as it was. The others stay as they are.</p>
          <Command text={`parallelrun job retry ${job.id} --mini-batches ${id}`} />
        </Question>
      )}
    </>
  );
}
