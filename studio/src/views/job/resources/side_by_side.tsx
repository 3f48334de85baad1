// All nodes of a job side by side: rows of bars, the sum of all first.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, JobNodeUsage, NodeUsageReport, ResourceUsage } from "../../../api/types";
import { Sparkline } from "../../../charts/sparkline";
import { DataTable } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { Meter } from "../../../parts/meter";
import { linkWith } from "../../../shell/router";
import { bytes, count, counted, percent, short } from "../../../words/numbers";
import { clock, duration, secondsBetween } from "../../../words/times";

const MOST = 200;

export function SideBySide({ job, revision }: { job: Job; revision: number }): JSX.Element | null {
  const { value } = useLoaded(
    job.id,
    (signal) => getJson<NodeUsageReport>(jobPath(job.id, "/node-usage", { limit: MOST }), signal),
    revision,
  );
  if (!value?.items.length) return null;
  const { items, nodes_total, total, nodes_in_total } = value;
  const most = mostOf(items);
  return (
    <Card
      title="Nodes side by side"
      aside={
        <span class="sub usage-key">
          <i class="first" /> CPU <i class="second" /> memory
        </span>
      }
    >
      <DataTable
        caption="What the nodes use"
        columns={["Node", "CPU", "Memory", "GPUs", "Disk", "Network", "Lately", "Measured"].map((name) => ({ name }))}
        rows={[
          [<b>{`All ${counted(nodes_in_total, "node")} at work`}</b>, ...cellsOf(total, undefined), "", ""],
          ...items.map((each) => [
            <a href={linkWith({ node: each.node })}>{each.node}</a>,
            ...cellsOf(each, most),
            <Sparkline label={lately(each)} first={each.history.cpu} second={each.history.memory} />,
            clock(each.at),
          ]),
        ]}
      />
      {nodes_total > items.length && (
        <p class="sub">
          {count(items.length)} of {count(nodes_total)} nodes are listed; the sum has all.
        </p>
      )}
    </Card>
  );
}

interface Most {
  disk: number;
  network: number;
}

const sum = (one: number | null, other: number | null): number | null =>
  one === null && other === null ? null : (one ?? 0) + (other ?? 0);
const diskOf = (usage: ResourceUsage): number | null =>
  sum(usage.disk_read_bytes_per_s, usage.disk_written_bytes_per_s);
const networkOf = (usage: ResourceUsage): number | null =>
  sum(usage.network_received_bytes_per_s, usage.network_sent_bytes_per_s);

/** What has no limit of its own is compared with the node that has most of it. */
function mostOf(nodes: JobNodeUsage[]): Most {
  return {
    disk: Math.max(...nodes.map((each) => diskOf(each) ?? 0)),
    network: Math.max(...nodes.map((each) => networkOf(each) ?? 0)),
  };
}

function cellsOf(usage: ResourceUsage, most: Most | undefined): JSX.Element[] {
  const { cpu, cpus, memory_used_bytes: used, memory_bytes: memory, gpu, gpus } = usage;
  const flow = (value: number | null, all: number | undefined, text: string): JSX.Element => (
    <Meter share={value === null || !all ? null : value / all} text={text} />
  );
  const rates = (first: string, one: number | null, second: string, other: number | null): string =>
    one === null ? "–" : `${first} ${bytes(one)}/s, ${second} ${bytes(other ?? 0)}/s`;
  return [
    <Meter share={cpu} text={cpu === null ? "–" : `${percent(cpu)}${cpus ? ` of ${short(cpus)}` : ""}`} />,
    <Meter
      share={used === null || !memory ? null : used / memory}
      text={used === null ? "–" : `${bytes(used)}${memory ? ` of ${bytes(memory)}` : ""}`}
    />,
    <Meter
      share={gpu}
      text={
        gpus
          ? [gpu === null ? "" : percent(gpu), `of ${count(gpus)}`, gpuMemory(usage)].filter(Boolean).join(" ")
          : "none"
      }
    />,
    flow(
      diskOf(usage),
      most?.disk,
      rates("read", usage.disk_read_bytes_per_s, "written", usage.disk_written_bytes_per_s),
    ),
    flow(
      networkOf(usage),
      most?.network,
      rates("in", usage.network_received_bytes_per_s, "out", usage.network_sent_bytes_per_s),
    ),
  ];
}

const gpuMemory = ({ gpu_memory_used_bytes: used, gpu_memory_bytes: all }: ResourceUsage): string =>
  used === null || all === null ? "" : `· ${bytes(used)} of ${bytes(all)}`;

function lately({ history: { at, cpu, memory } }: JobNodeUsage): string {
  const range = (values: (number | null)[]): string => {
    const numbers = values.filter((value) => value !== null);
    return numbers.length ? `${percent(Math.min(...numbers))} to ${percent(Math.max(...numbers))}` : "not measured";
  };
  const time = duration(secondsBetween(at[0]!, at.at(-1)!));
  return `The last ${time}: CPU ${range(cpu)}, memory ${range(memory)}`;
}
