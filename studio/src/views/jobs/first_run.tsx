// What stands in place of the list while there is no job at all: how to get to the first one.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../../api/http";
import { Command } from "../../parts/command";
import { Trouble } from "../../parts/notice";
import { go } from "../../shell/router";
import { runExample } from "./example";

export function FirstRun(): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const [problem, tell] = useState<Problem | undefined>(undefined);
  const run = (): void => {
    setBusy(true);
    runExample().then(
      (id) => go(`/jobs/${id}`),
      (refused: Problem) => {
        tell(refused);
        setBusy(false);
      },
    );
  };
  return (
    <section class="card first-run" aria-labelledby="first-run">
      <h2 id="first-run">No job yet</h2>
      <p>A job runs your script over many files or rows, on all workers of the cluster. To see one at work:</p>
      <p class="actions">
        <button type="button" class="main" disabled={isBusy} onClick={run}>
          {isBusy ? "Submitting …" : "Run the example job"}
        </button>
        <span class="sub">It counts the words of forty small files, and takes some seconds.</span>
      </p>
      {problem && <Trouble problem={problem} />}
      <p>Or from a terminal:</p>
      <ol>
        <li>
          Make an example: a script, some input files, and a job file that names both.
          <Command text="parallelrun init first-job" />
        </li>
        <li>
          Submit it. It appears here at once.
          <Command text="parallelrun job create --file first-job/job.yml" />
        </li>
      </ol>
      <p class="sub">
        How to write one of your own is in <code>README.md</code>, and each setting in <code>docs/job-spec.md</code>.
      </p>
    </section>
  );
}
