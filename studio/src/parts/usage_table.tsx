// What nodes use, side by side: rows of bars, the sum of all first.

import type { ComponentChildren, JSX } from "preact";
import type { NodeUsage, ResourceUsage } from "../api/types";
import { Sparkline } from "../charts/sparkline";
import { DataTable } from "../charts/twin";
import { bytes, count, percent, short } from "../words/numbers";
import { clock, duration, secondsBetween } from "../words/times";
import { Meter } from "./meter";

export interface UsedNode {
  title: ComponentChildren;
  usage: NodeUsage;
}

interface Props {
  nodes: UsedNode[];
  /** The title of the first row, and what all use together. */
  total: [string, ResourceUsage];
}

export function UsageTable({ nodes, total: [title, total] }: Props): JSX.Element {
  const most = mostOf(nodes.map(({ usage }) => usage));
  return (
    <DataTable
      caption="What the nodes use"
      columns={["Node", "CPU", "Memory", "GPUs", "Disk", "Network", "Lately", "Measured"].map((name) => ({ name }))}
      rows={[
        [<b>{title}</b>, ...cellsOf(total, undefined), "", ""],
        ...nodes.map(({ title: node, usage }) => [
          node,
          ...cellsOf(usage, most),
          usage.history.at.length > 1 && (
            <Sparkline label={lately(usage)} first={usage.history.cpu} second={usage.history.memory} />
          ),
          clock(usage.at),
        ]),
      ]}
    />
  );
}

export const USAGE_KEY = (
  <span class="sub usage-key">
    <i class="first" /> CPU <i class="second" /> memory
  </span>
);

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
function mostOf(nodes: ResourceUsage[]): Most {
  return {
    disk: Math.max(...nodes.map((each) => diskOf(each) ?? 0)),
    network: Math.max(...nodes.map((each) => networkOf(each) ?? 0)),
  };
}

function cellsOf(usage: ResourceUsage, most: Most | undefined): JSX.Element[] {
  const { cpu, cpus, memory_used_bytes: used, memory_bytes: memory, gpu, gpus } = usage;
  const flow = (value: number | null, all: number | undefined, text: string): JSX.Element => (
    <Meter share={value === null || !all ? null : value / all} text={text} isRelative />
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

function lately({ history: { at, cpu, memory } }: NodeUsage): string {
  const range = (values: (number | null)[]): string => {
    const numbers = values.filter((value) => value !== null);
    return numbers.length ? `${percent(Math.min(...numbers))} to ${percent(Math.max(...numbers))}` : "not measured";
  };
  const time = duration(secondsBetween(at[0]!, at.at(-1)!));
  return `The last ${time}: CPU ${range(cpu)}, memory ${range(memory)}`;
}
