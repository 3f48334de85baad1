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
}

export function LogList({ job, files, current, hasMore }: Props): JSX.Element {
  const [text, setText] = useState("");
  const shown = files.filter(({ path }) => path.includes(text)).slice(0, MOST);
  const folders = Map.groupBy(shown, ({ path }) => path.split("/").slice(0, -1).join("/"));
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
      </nav>
      {files.length > shown.length && <p class="sub">{shown.length} are shown.</p>}
    </Card>
  );
}
