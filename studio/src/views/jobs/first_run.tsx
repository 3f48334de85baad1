// What stands in place of the list while there is no job at all: how to get to the first one.

import type { JSX } from "preact";
import { Command } from "../../parts/command";

export function FirstRun(): JSX.Element {
  return (
    <section class="card first-run" aria-labelledby="first-run">
      <h2 id="first-run">No job yet</h2>
      <p>A job runs your script over many files or rows, on all workers of the cluster. To see one at work:</p>
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
    </section>
  );
}
