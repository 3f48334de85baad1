// The outputs of a pipeline, and the steps that make them.

import type { JSX } from "preact";
import { isOver } from "../../../api/live";
import type { Job } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Copy } from "../../../parts/copy";
import { Coded } from "../../../parts/prose";

export function PipelineOutputs({ job }: { job: Job }): JSX.Element | null {
  if (!job.outputs.length) return null;
  return (
    <Card title="Outputs of the pipeline" kind="wide">
      <dl class="pairs left">
        {job.outputs.map(({ name, step, path }) => {
          const lack = isOver(job) && step ? lackOf(job, step) : "";
          return (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                {path ? <code>{path}</code> : isOver(job) ? "not made" : "not made yet"}{" "}
                {path && <Copy text={path} label={`Copy the path of ${name}`} />}
                {lack ? (
                  <span class="bad">
                    <Coded text={` ${path ? "not whole, " : ""}since ${lack}`} />
                  </span>
                ) : (
                  step && <span class="sub"> by step {step}</span>
                )}
              </dd>
            </div>
          );
        })}
      </dl>
    </Card>
  );
}

/** Why a step of a pipeline that has ended has not made all of its outputs; empty: it has. */
function lackOf({ steps, state }: Job, name: string): string {
  const step = steps.find((each) => each.name === name);
  if (!step || step.state === "completed") return "";
  return `step ${name} ${ENDS[step.state] ?? `had not ended when the pipeline was ${state}`}${step.why && `: ${step.why}`}`;
}

const ENDS: Record<string, string> = { failed: "failed", skipped: "was skipped", canceled: "was canceled" };
