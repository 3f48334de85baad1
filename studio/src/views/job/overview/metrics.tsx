// The last value of each metric that the script has logged; they are known when the job has ended.

import type { JSX } from "preact";
import type { Job } from "../../../api/types";
import { Card } from "../../../parts/card";

export function Metrics({ job }: { job: Job }): JSX.Element | null {
  const metrics = Object.entries(job.metrics);
  if (!metrics.length) return null;
  return (
    <Card title="Metrics">
      <dl class="pairs">
        {metrics.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{String(value)}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
