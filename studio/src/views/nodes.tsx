// The nodes of the cluster.

import type { JSX } from "preact";
import { useEvery } from "../api/every";
import { getJson, type Page } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { Node } from "../api/types";
import { Empty, Shown } from "../parts/notice";
import { Bar } from "../parts/bar";
import { State } from "../parts/state";
import { bytes, counted, percent } from "../words/numbers";
import { age } from "../words/times";
import { Computes } from "./computes";

const EVERY_MS = 3000;

export function Nodes(): JSX.Element {
  const round = useEvery(EVERY_MS);
  const nodes = useLoaded("nodes", (signal) => getJson<Page<Node>>(apiPath("/nodes"), signal), round);
  return (
    <div class="page">
      <h1>Nodes</h1>
      <Shown of={nodes}>
        {({ items }) =>
          items.length ? (
            <ul class="nodes">
              {items.map((node) => (
                <NodeCard key={node.node} node={node} />
              ))}
            </ul>
          ) : (
            <Empty>
              No node yet. Start one with <code>parallelrun-agent</code>.
            </Empty>
          )
        }
      </Shown>
      <Computes revision={round} />
    </div>
  );
}

function gpuOf({ name, utilization, memory_used_bytes, memory_bytes }: NonNullable<Node["gpus"]>[number]): string {
  const memory = memory_bytes
    ? `${memory_used_bytes === null ? "" : `${bytes(memory_used_bytes)} of `}${bytes(memory_bytes)}`
    : "";
  return [name, utilization === null ? "" : `${percent(utilization)} in use`, memory].filter(Boolean).join(", ");
}

/** The share of the last minute in which something waited. */
function pressureOf({ cpu, io, memory }: NonNullable<Node["pressure"]>): string {
  return `CPU ${percent(cpu)}, I/O ${percent(io)}, memory ${percent(memory)}`;
}

function NodeCard({ node }: { node: Node }): JSX.Element {
  const facts: [string, JSX.Element | string][] = [
    ["Host", node.host],
    ["Memory", node.memory_bytes ? bytes(node.memory_bytes) : "–"],
    ["Free disk", bytes(node.disk_free_bytes)],
    ["Clock", Math.abs(node.clock_ahead_s) < 0.5 ? "right" : `${node.clock_ahead_s.toFixed(1)} s ahead`],
    ["User code", node.workers_apart ? "as another user" : "as the agent's user"],
    ...(node.pressure ? [["Pressure", pressureOf(node.pressure)] as [string, string]] : []),
    ...(node.gpus ?? []).map((gpu) => [`GPU ${gpu.device}`, gpuOf(gpu)] as [string, string]),
    ["Started", age(node.started, Date.now())],
    ["Release", node.version],
  ];
  return (
    <li class="card">
      <header>
        <h2>{node.node}</h2>
        <State state={node.state} {...(node.state === "ready" ? { kind: "done" as const } : {})} />
      </header>
      <p class="sub">
        {node.busy} of {node.slots} workers busy
      </p>
      <Bar label={`Busy workers of ${node.node}`} total={node.slots} shares={[{ kind: "done", value: node.busy }]} />
      <dl class="pairs">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {node.work.length > 0 && (
        <ul class="work" aria-label={`Jobs that ${node.node} works for`}>
          {node.work.map(({ job, name, workers }) => (
            <li key={job}>
              <a href={`/jobs/${job}`}>{name || job}</a> <span class="sub">{counted(workers, "worker")}</span>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
