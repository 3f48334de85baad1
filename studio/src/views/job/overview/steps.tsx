// The steps of a pipeline: as a graph from left to right, and as a table.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Job, PipelineStep } from "../../../api/types";
import { DataTable } from "../../../charts/twin";
import { Bar, progressShares } from "../../../parts/bar";
import { Card } from "../../../parts/card";
import { Choice } from "../../../parts/choice";
import { Coded } from "../../../parts/prose";
import { Mark, State } from "../../../parts/state";
import { kindOf } from "../../../words/states";
import { count } from "../../../words/numbers";
import { duration, secondsBetween } from "../../../words/times";
import { linkToLog } from "../links";
import { curveBetween, graphOf, WIDTH, type Graph } from "./step_graph";

export function Steps({ job, now }: { job: Job; now: number }): JSX.Element {
  const [isTable, setTable] = useState(false);
  return (
    <Card
      title="Steps"
      kind="wide"
      aside={
        <Choice
          label="Steps"
          value={isTable ? "table" : "graph"}
          options={{ graph: "Graph", table: "Table" }}
          onChange={(value) => setTable(value === "table")}
        />
      }
    >
      {isTable ? (
        <StepTable steps={job.steps} now={now} />
      ) : (
        <StepGraph graph={graphOf(job.steps, (step) => told(step, now))} now={now} />
      )}
    </Card>
  );
}

function StepGraph({ graph, now }: { graph: Graph; now: number }): JSX.Element {
  return (
    <div class="steps" tabIndex={0} role="region" aria-label="Graph of the steps">
      <div class="plane" style={{ width: `${graph.width}px`, height: `${graph.height}px` }}>
        <svg width={graph.width} height={graph.height} aria-hidden="true">
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M1 1l6 3-6 3" />
            </marker>
          </defs>
          {graph.edges.map(([from, to]) => (
            <path
              key={`${from.step.name} ${to.step.name}`}
              d={curveBetween(from, to, graph.boxHeight)}
              marker-end="url(#arrow)"
            />
          ))}
        </svg>
        {graph.places.map(({ step, x, y }) => (
          <div
            key={step.name}
            class={`step ${kindOf(step.state)}`}
            style={{ left: `${x}px`, top: `${y}px`, width: `${WIDTH}px`, height: `${graph.boxHeight}px` }}
          >
            <p class="name">
              <Mark state={step.state} />
              <Name step={step} />
              <StepLog step={step} />
            </p>
            <p class="sub">
              <Coded text={told(step, now)} />
            </p>
            {step.progress && step.state !== "waiting" && step.progress.scheduled > 0 && (
              <Bar
                label={`Progress of ${step.name}`}
                total={step.progress.scheduled}
                shares={progressShares(step.progress)}
              />
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

function StepTable({ steps, now }: { steps: PipelineStep[]; now: number }): JSX.Element {
  return (
    <DataTable
      caption="Steps"
      columns={[
        { name: "Step" },
        { name: "State" },
        { name: "Kind" },
        { name: "Needs" },
        { name: "Mini-batches", isNumber: true },
        { name: "Time", isNumber: true },
        { name: "Why" },
      ]}
      rows={steps.map((step) => [
        <Name step={step} />,
        <State state={step.state} />,
        step.loop ?? step.type,
        step.needs.join(", ") || "–",
        turnsOf(step) ||
          (step.progress
            ? `${count(step.progress.done + step.progress.failed)} / ${count(step.progress.scheduled)}`
            : "–"),
        timeOf(step, now) || "–",
        <>
          <Coded text={step.why} /> <StepLog step={step} />
        </>,
      ])}
    />
  );
}

function Name({ step }: { step: PipelineStep }): JSX.Element {
  return step.job ? <a href={`/jobs/${step.job}`}>{step.name}</a> : <b>{step.name}</b>;
}

function StepLog({ step }: { step: PipelineStep }): JSX.Element | null {
  return step.state === "failed" && step.job ? (
    <a class="to-log" href={linkToLog(step.job, "job_result.txt")}>
      Open its log
    </a>
  ) : null;
}

function told(step: PipelineStep, now: number): string {
  if (step.reused) return "taken from an earlier run";
  return [step.state, turnsOf(step), timeOf(step, now), step.why].filter(Boolean).join(" · ");
}

function turnsOf(step: PipelineStep): string {
  if (!step.turns) return "";
  const isPart = step.loop === "parallel_for" && step.turns !== step.most_turns;
  const turns = isPart ? `${count(step.turns)} of ${count(step.most_turns ?? 0)}` : count(step.turns);
  return `${turns} ${step.turns === 1 && !isPart ? "turn" : "turns"}`;
}

const timeOf = (step: PipelineStep, now: number): string =>
  step.started ? duration(Math.max(0, secondsBetween(step.started, step.ended ?? now))) : "";
