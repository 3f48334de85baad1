// What has gone wrong, by kind: the most frequent first, each with mini-batches to look at and the log to open.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { usePicture } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, KindsOfErrors } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Cause } from "../../../parts/cause";
import { counted } from "../../../words/numbers";
import { linkToLog, linkToMiniBatch } from "../links";

/** As many of each kind as the server lists. */
const MOST_LISTED = 10;

export function Errors({ job, revision }: { job: Job; revision: number }): JSX.Element | null {
  const { value } = usePicture(
    job.id,
    (signal) => getJson<KindsOfErrors>(jobPath(job.id, "/errors"), signal),
    revision,
    job.state,
  );
  if (!value?.items.length) return null;
  return (
    <Card title="Errors" kind="wide" aside={<span class="sub">{counted(value.count, "try", "tries")} failed</span>}>
      <ul class="errors">
        {value.items.map((error) => (
          <li key={`${error.category} ${error.place} ${error.message}`}>
            <p class="heading">
              <span class="count">{error.count} ×</span>
              <Cause category={error.category} />
              {error.place && <span class="sub">{error.place}</span>}
            </p>
            <p class="message">
              <code>{error.message}</code>
              {error.has_several_messages && <span class="sub"> and other messages</span>}
            </p>
            <p class="sub">
              Mini-batches{" "}
              {error.mini_batches.map((id) => (
                <a key={id} href={linkToMiniBatch(job.id, id)}>
                  {id}
                </a>
              ))}
              {error.mini_batches.length === MOST_LISTED && (
                <a
                  href={`/jobs/${job.id}/mini-batches?${new URLSearchParams({ state: "failed", category: error.category }).toString()}`}
                >
                  all that failed so
                </a>
              )}
              {error.log && <a href={linkToLog(job.id, error.log)}>Open the log</a>}
            </p>
            {error.traceback && (
              <details>
                <summary>Traceback</summary>
                <pre>{error.traceback}</pre>
              </details>
            )}
          </li>
        ))}
      </ul>
      {value.left_out > 0 && <p class="sub">{counted(value.left_out, "try", "tries")} of other kinds are not shown.</p>}
    </Card>
  );
}
