// The logs of a job: which there are, one of them as it grows, and a search in all.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { FileEntry, FileList } from "../../../api/types";
import { Empty, Shown } from "../../../parts/notice";
import { place } from "../../../shell/router";
import type { TabProps } from "../tab_props";
import { LogList } from "./log_list";
import { LogSearch } from "./log_search";
import { LogView } from "./log_view";
import { MergedLogs } from "./merged";

const MOST_WORKERS = 300;
const FIRST = ["job_result.txt", "user/error.txt", "job_error.txt"];

export function Logs({ job, live }: TabProps): JSX.Element {
  const { query } = place.value;
  const files = useLoaded(job.id, (signal) => getJson<FileList>(jobPath(job.id, "/logs"), signal), live.revision.value);
  const at = query.get("at");
  return (
    <Shown of={files}>
      {({ items, next_page_token }) => {
        const isMerged = query.has("merged");
        const files = items.filter(({ bytes, path }) => bytes > 0 && !path.endsWith(".marks"));
        const path = isMerged
          ? undefined
          : (query.get("path") ?? FIRST.find((each) => files.some((file) => file.path === each)) ?? files[0]?.path);
        const isEmpty = items.find((item) => item.path === path)?.bytes === 0;
        return (
          <div class="logs">
            <div class="stack">
              <LogSearch job={job} />
              <LogList job={job} files={files} current={path} hasMore={next_page_token !== null} isMerged={isMerged} />
            </div>
            {isMerged ? (
              <MergedLogs job={job} workers={workersOf(files)} />
            ) : path ? (
              <LogView
                key={`${path} ${isEmpty}`}
                job={job}
                path={path}
                isEmpty={isEmpty}
                at={at && /^\d{1,15}$/.test(at) ? Number(at) : undefined}
              />
            ) : (
              <Empty>There are no logs yet.</Empty>
            )}
          </div>
        );
      }}
    </Shown>
  );
}

/** Nodes, and the workers of each. */
function workersOf(files: FileEntry[]): string[] {
  const workers = new Set<string>();
  for (const { path } of files) {
    const [, node, process] = /^sys\/node\/([^/]+)\/(process\d+)\./.exec(path) ?? [];
    if (node) workers.add(node).add(`${node}/${process}`);
  }
  return [...workers].sort().slice(0, MOST_WORKERS);
}
