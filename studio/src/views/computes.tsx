// The computes of the cluster: pools of like nodes, which engines start and stop.

import type { JSX } from "preact";
import { getJson } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { Compute } from "../api/types";
import { DataTable } from "../charts/twin";
import { Card } from "../parts/card";

export function Computes({ revision }: { revision: number }): JSX.Element | null {
  const { value } = useLoaded(
    "computes",
    (signal) => getJson<{ items: Compute[] }>(apiPath("/computes"), signal),
    revision,
  );
  if (!value?.items.length) return null;
  return (
    <Card title="Computes">
      <DataTable
        caption="Computes"
        columns={[
          { name: "Name" },
          { name: "Kind" },
          { name: "Fewest nodes", isNumber: true },
          { name: "Most nodes", isNumber: true },
          { name: "Ready", isNumber: true },
          { name: "Wanted", isNumber: true },
          { name: "Launching", isNumber: true },
          { name: "What its engine says" },
        ]}
        rows={value.items.map((each) => [
          <b>{each.name}</b>,
          each.type,
          each.min_instances,
          each.max_instances,
          each.status?.ready ?? "–",
          each.status?.wanted ?? "–",
          each.status?.launching ?? "–",
          <>
            {each.is_default && <span class="chip">runs jobs that name none</span>}
            {each.status?.why && <span class="bad">{each.status.why}</span>}
          </>,
        ])}
      />
    </Card>
  );
}
