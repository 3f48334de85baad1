// Which jobs have the workers for which another one waits.

import type { JSX } from "preact";
import { useEvery } from "../../api/every";
import { getJson, type Page } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { Job, Node } from "../../api/types";
import { counted } from "../../words/numbers";

const EVERY_MS = 5000;

export function Holders({ job }: { job: Job }): JSX.Element | null {
  const compute = String(job.spec.compute ?? "");
  const { value } = useLoaded(
    "holders",
    (signal) => getJson<Page<Node>>(apiPath("/nodes"), signal),
    useEvery(EVERY_MS),
  );
  if (!value) return null;
  // Workers of other computes are of no use to it.
  const nodes = value.items.filter((node) => node.state === "ready" && node.compute === compute);
  const slots = nodes.reduce((sum, node) => sum + node.slots, 0);
  const held = new Map<string, { name: string; workers: number }>();
  for (const { job: id, name, workers } of nodes.flatMap((node) => node.work))
    held.set(id, { name, workers: workers + (held.get(id)?.workers ?? 0) });
  held.delete(job.id);
  return (
    <p class="links">
      {held.size
        ? `Of ${counted(slots, "worker")} ${compute ? `of ${compute}` : "of the cluster"}, at work are: `
        : "No other job is at work."}
      {[...held].map(([id, { name, workers }]) => (
        <a key={id} href={`/jobs/${id}`}>
          {workers} for {name || id}
        </a>
      ))}
    </p>
  );
}
