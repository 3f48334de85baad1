// Run one failed mini-batch again, into the same output. It asks first.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { send, type Problem } from "../../../api/http";
import { jobPath } from "../../../api/paths";
import type { Job } from "../../../api/types";
import { Command } from "../../../parts/command";
import { Dialog } from "../../../parts/dialog";
import { Trouble } from "../../../parts/notice";
import { go } from "../../../shell/router";

export function RetryOne({ job, id }: { job: Job; id: number }): JSX.Element {
  const [isAsked, ask] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [problem, tell] = useState<Problem | undefined>(undefined);
  const act = async (): Promise<void> => {
    setBusy(true);
    try {
      await send("POST", `${jobPath(job.id)}:retry`, { mini_batches: [id] });
      go(`/jobs/${job.id}`);
    } catch (error) {
      tell(error as Problem);
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" onClick={() => ask(true)}>
        Retry this one
      </button>
      {isAsked && (
        <Dialog title={`Retry mini-batch ${id}?`} onClose={() => ask(false)}>
          <p>It is run again, into the same output, with the code as it was. The others stay as they are.</p>
          <Command text={`parallelrun job retry ${job.id} --mini-batches ${id}`} />
          {problem && <Trouble problem={problem} />}
          <div class="actions">
            <button type="button" onClick={() => ask(false)}>
              Leave it
            </button>
            <button type="button" class="main" disabled={isBusy} onClick={() => void act()}>
              Retry
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
