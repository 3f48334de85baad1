// The logs that there are, by folder. With thousands of workers there are thousands: a word narrows them.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FileEntry, Job } from "../../../api/types";
import { Card } from "../../../parts/card";
import { bytes } from "../../../words/numbers";
import { linkToLog } from "../links";

const MOST = 300;

interface Props {
  job: Job;
  files: FileEntry[];
  current: string | undefined;
  hasMore: boolean;
  isMerged: boolean;
}

/** What the script has said or done wrong; the engine's own are folded. */
const isYours = ({ path }: FileEntry): boolean =>
  path.startsWith("user/") || ["job_result.txt", "job_error.txt", "failed_items.csv", "warnings.txt"].includes(path);

export function LogList({ job, files, current, hasMore, isMerged }: Props): JSX.Element {
  const [text, setText] = useState("");
  const shown = files.filter(({ path }) => path.includes(text)).slice(0, MOST);
  const [yours, others] = [shown.filter(isYours), shown.filter((file) => !isYours(file))];
  return (
    <Card
      title="Logs"
      aside={
        <span class="sub">
          {files.length}
          {hasMore && " and more"}
        </span>
      }
    >
      {files.length > 12 && (
        <input
          type="search"
          class="narrow"
          aria-label="Narrow the list of logs"
          placeholder="node, process, name"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      )}
      <nav class="files" aria-label="Logs">
        <p>
          <a class="row" href={`/jobs/${job.id}/logs?merged=1`} aria-current={isMerged ? "true" : undefined}>
            All workers by time
          </a>
        </p>
        <Folders job={job} files={yours} current={current} />
        {others.length > 0 && (
          <details open={text !== "" || others.some(({ path }) => path === current)}>
            <summary>The engine's own ({others.length})</summary>
            <Folders job={job} files={others} current={current} />
          </details>
        )}
      </nav>
      {files.length > shown.length && <p class="sub">{shown.length} are shown.</p>}
    </Card>
  );
}

function Folders({ job, files, current }: Pick<Props, "job" | "files" | "current">): JSX.Element {
  const folders = Map.groupBy(files, ({ path }) => path.split("/").slice(0, -1).join("/"));
  return (
    <>
      {[...folders].map(([folder, entries]) => (
        <section key={folder}>
          {folder && <h3>{folder}</h3>}
          <ul>
            {entries.map((entry) => (
              <li key={entry.path}>
                <a
                  class="row"
                  href={linkToLog(job.id, entry.path)}
                  aria-current={entry.path === current ? "true" : undefined}
                >
                  {entry.path.split("/").at(-1)}
                </a>
                <span class="sub">{bytes(entry.bytes)}</span>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}
