// What is to be known of a job beside its progress: warnings about its output, and what its document asks for in vain.

import type { JSX } from "preact";
import type { Job } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Icon } from "../../../parts/icon";
import { Prose } from "../../../parts/prose";

export function Notes({ job }: { job: Job }): JSX.Element | null {
  const description = typeof job.spec["description"] === "string" ? job.spec["description"] : "";
  if (!job.warnings.length && !job.notes.length && !description) return null;
  return (
    <Card title="Notes" kind="wide">
      {description && <p>{description}</p>}
      <ul class="notes">
        {job.warnings.map((warning) => (
          <li key={warning} class="warning">
            <Icon name="warning" />
            <Prose text={warning} />
          </li>
        ))}
        {job.notes.map((note) => (
          <li key={note}>
            <Prose text={note} />
          </li>
        ))}
      </ul>
    </Card>
  );
}
