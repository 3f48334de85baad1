// What a job has used on each of its nodes, as the agents have recorded it in the job's logs.

import type { JSX } from "preact";
import { getJson, getText } from "../../../api/http";
import { isOver } from "../../../api/live";
import { useLoaded } from "../../../api/loaded";
import { filePath, jobPath } from "../../../api/paths";
import type { FileList, Job } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Empty, Shown } from "../../../parts/notice";
import { ask, place } from "../../../shell/router";
import { rowsOf } from "../../../words/table";
import type { TabProps } from "../tab_props";
import { GpuCharts } from "./gpu_charts";
import { NodeCharts } from "./node_charts";
import { SideBySide } from "./side_by_side";
import { Stacks } from "./stacks";
import { Workers } from "./workers";

const FOLDER = "sys/perf/";
const OF_NODE = "node_resource_usage.csv";
const OF_GPUS = "node_gpu_usage.csv";
const OF_WORKERS = "processes_resource_usage.csv";
/** Of a file, from its end: hours of a long job. */
const MOST_BYTES = 512 * 1024;

export function Resources({ job, live }: TabProps): JSX.Element {
  const files = useLoaded(job.id, (signal) => getJson<FileList>(jobPath(job.id, "/logs"), signal), live.revision.value);
  return (
    <Shown of={files}>
      {({ items }) => {
        const nodes = items
          .filter(({ path }) => path.startsWith(FOLDER) && path.endsWith(OF_NODE))
          .map(({ path }) => path.split("/")[2]!);
        if (!nodes.length)
          return (
            <Empty>
              Nothing is recorded of a node that has worked for a job for less than a second. The setting{" "}
              <code>resource_monitor_interval</code> says how often it is; a value of 0 turns it off.
            </Empty>
          );
        const asked = place.value.query.get("node");
        const node = nodes.find((each) => each === asked) ?? nodes[0]!;
        return (
          <div class="stack">
            {!isOver(job) && job.type === "parallel" && <Stacks job={job} />}
            <SideBySide job={job} revision={live.revision.value} />
            {nodes.length > 1 && (
              <label class="pick">
                Node{" "}
                <select value={node} onChange={(event) => ask({ node: event.currentTarget.value })}>
                  {nodes.map((each) => (
                    <option key={each}>{each}</option>
                  ))}
                </select>
              </label>
            )}
            <OneNode
              key={node}
              job={job}
              node={node}
              hasGpus={items.some(({ path }) => path === `${FOLDER}${node}/${OF_GPUS}`)}
              revision={live.revision.value}
            />
          </div>
        );
      }}
    </Shown>
  );
}

interface OneNodeProps {
  job: Job;
  node: string;
  hasGpus: boolean;
  revision: number;
}

function OneNode({ job, node, hasGpus, revision }: OneNodeProps): JSX.Element {
  const load = (name: string) => async (signal: AbortSignal) =>
    rowsOf(await endOf(filePath(job.id, "logs", `${FOLDER}${node}/${name}`), signal));
  const machine = useLoaded(`${node} ${OF_NODE}`, load(OF_NODE), revision);
  const gpus = useLoaded(
    `${node} ${OF_GPUS} ${hasGpus}`,
    (signal) => (hasGpus ? load(OF_GPUS)(signal) : Promise.resolve([])),
    revision,
  );
  const workers = useLoaded(`${node} ${OF_WORKERS}`, load(OF_WORKERS), revision);
  return (
    <>
      <Shown of={machine}>
        {(rows) =>
          rows.length > 1 ? <NodeCharts node={node} rows={rows} /> : <Empty>There is only one record yet.</Empty>
        }
      </Shown>
      <GpuCharts rows={gpus.value ?? []} />
      {workers.value && workers.value.length > 0 && (
        <Card title={`Workers of ${node}`}>
          <Workers rows={workers.value} />
        </Card>
      )}
    </>
  );
}

/** The head of a table, and as many of its last lines as may be. */
async function endOf(path: string, signal: AbortSignal): Promise<string> {
  const answer = await getText(path, { Range: `bytes=-${MOST_BYTES}` }, signal);
  const text = await answer.text();
  if (!/^bytes [1-9]/.test(answer.headers.get("Content-Range") ?? "")) return text;
  const head = await (await getText(path, { Range: "bytes=0-4095" }, signal)).text();
  return head.slice(0, head.indexOf("\n") + 1) + text.slice(text.indexOf("\n") + 1);
}
