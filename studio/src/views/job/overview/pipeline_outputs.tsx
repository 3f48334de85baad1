// The outputs of a pipeline, and the steps that make them.

import type { JSX } from "preact";
import type { Job } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Copy } from "../../../parts/copy";

export function PipelineOutputs({ job }: { job: Job }): JSX.Element | null {
  if (!job.outputs.length) return null;
  return (
    <Card title="Outputs of the pipeline" kind="wide">
      <dl class="pairs left">
        {job.outputs.map(({ name, step, path }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {path ? <code>{path}</code> : "not made yet"}{" "}
              {path && <Copy text={path} label={`Copy the path of ${name}`} />}
              {step && <span class="sub"> by step {step}</span>}
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
