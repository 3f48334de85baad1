// The nodes of the cluster.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useEvery } from "../api/every";
import { getJson, send } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { Node, NodeList } from "../api/types";
import { Bar } from "../parts/bar";
import { Card } from "../parts/card";
import { Command } from "../parts/command";
import { Empty, Shown } from "../parts/notice";
import { Question } from "../parts/question";
import { State } from "../parts/state";
import { USAGE_KEY, UsageTable } from "../parts/usage_table";
import { bytes, counted, percent } from "../words/numbers";
import { age } from "../words/times";
import { Computes } from "./computes";

const EVERY_MS = 3000;

export function Nodes(): JSX.Element {
  const round = useEvery(EVERY_MS);
  const nodes = useLoaded("nodes", (signal) => getJson<NodeList>(apiPath("/nodes"), signal), round);
  const [drained, drain] = useState<Node | undefined>(undefined);
  return (
    <div class="page">
      <h1>Nodes</h1>
      <Shown of={nodes}>
        {(all) =>
          all.items.length ? (
            <>
              <ul class="nodes">
                {all.items.map((node) => (
                  <NodeCard key={node.node} node={node} drain={drain} />
                ))}
              </ul>
              <Used of={all} />
            </>
          ) : (
            <>
              <Empty>No node yet. Start one:</Empty>
              <Command text="parallelrun-agent" />
            </>
          )
        }
      </Shown>
      <Computes revision={round} />
      {drained && <Drain node={drained} onDone={nodes.reload} onClose={() => drain(undefined)} />}
    </div>
  );
}

function Used({ of: { items, total } }: { of: NodeList }): JSX.Element | false {
  return (
    total !== null && (
      <div class="nodes-used">
        <Card title="Side by side" aside={USAGE_KEY}>
          <UsageTable
            total={["All machines", total]}
            nodes={items.flatMap(({ node, usage }) => (usage ? [{ title: node, usage }] : []))}
          />
        </Card>
      </div>
    )
  );
}

function Drain({ node, onDone, onClose }: { node: Node; onDone: () => void; onClose: () => void }): JSX.Element {
  const path = apiPath(`/nodes/${encodeURIComponent(node.node)}:drain`);
  return (
    <Question
      title={`Drain ${node.node}?`}
      button="Drain"
      act={() => send("POST", path).then(onDone)}
      onClose={onClose}
    >
      <p>
        It finishes what {node.busy ? `its ${counted(node.busy, "busy worker")} run` : "it runs"}, for as long as its
        agent may take, returns the rest, and leaves. Other nodes go on.{" "}
        {node.compute
          ? `The compute ${node.compute} gets another one if its jobs need it.`
          : "It comes back when its agent is started again."}
      </p>
      <Command text={`parallelrun node drain ${node.node}`} />
    </Question>
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

function factsOf(node: Node): [string, string][] {
  return [
    ["Host", node.host],
    ...(node.compute ? [["Compute", node.compute] as [string, string]] : []),
    ["Memory", node.memory_bytes ? bytes(node.memory_bytes) : "–"],
    ["Free disk", bytes(node.disk_free_bytes)],
    ...(Math.abs(node.clock_ahead_s) < 0.5
      ? []
      : [["Clock", `${node.clock_ahead_s.toFixed(1)} s ahead`] as [string, string]]),
    ...(node.workers_apart ? [["User code", "as another user"] as [string, string]] : []),
    ...(node.pressure ? [["Pressure", pressureOf(node.pressure)] as [string, string]] : []),
    ...(node.gpus ?? []).map((gpu) => [`GPU ${gpu.device}`, gpuOf(gpu)] as [string, string]),
    ["Started", age(node.started, Date.now())],
    ["Release", node.version],
  ];
}

function NodeCard({ node, drain }: { node: Node; drain: (node: Node) => void }): JSX.Element {
  return (
    <li class="card">
      <header>
        <h2>{node.node}</h2>
        <State state={node.state} {...(node.state === "ready" ? { kind: "done" as const } : {})} />
        {(node.state === "ready" || node.state === "disk_full") && (
          <button type="button" aria-label={`Drain ${node.node}`} onClick={() => drain(node)}>
            Drain
          </button>
        )}
      </header>
      <p class="sub">
        {node.busy} of {node.slots} workers busy
      </p>
      <Bar label={`Busy workers of ${node.node}`} total={node.slots} shares={[{ kind: "done", value: node.busy }]} />
      <dl class="pairs">
        {factsOf(node).map(([name, value]) => (
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
