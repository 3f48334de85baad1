// All nodes of a job side by side, the sum of all first.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, NodeUsageReport } from "../../../api/types";
import { Card } from "../../../parts/card";
import { USAGE_KEY, UsageTable } from "../../../parts/usage_table";
import { linkWith } from "../../../shell/router";
import { count, counted } from "../../../words/numbers";

const MOST = 200;

export function SideBySide({ job, revision }: { job: Job; revision: number }): JSX.Element | null {
  const { value } = useLoaded(
    job.id,
    (signal) => getJson<NodeUsageReport>(jobPath(job.id, "/node-usage", { limit: MOST }), signal),
    revision,
  );
  if (!value?.items.length) return null;
  const { items, nodes_total, total, nodes_in_total: nodes, machines_in_total: machines } = value;
  const where = machines < nodes ? `, on ${counted(machines, "machine")}` : "";
  return (
    <Card title="Nodes side by side" aside={USAGE_KEY}>
      <UsageTable
        total={[`All ${counted(nodes, "node")} at work${where}`, total]}
        nodes={items.map((usage) => ({ title: <a href={linkWith({ node: usage.node })}>{usage.node}</a>, usage }))}
      />
      {nodes_total > items.length && (
        <p class="sub">
          {count(items.length)} of {count(nodes_total)} nodes are listed; the sum has all.
        </p>
      )}
    </Card>
  );
}
