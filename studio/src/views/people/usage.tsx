// What each person has used, by week; a spreadsheet gets the same as CSV.

import type { JSX } from "preact";
import { getJson } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { UsageList, UsageOfWeek } from "../../api/types";
import { DataTable, type Column } from "../../charts/twin";
import { Card } from "../../parts/card";
import { Empty, Shown } from "../../parts/notice";
import { bytes } from "../../words/numbers";

export const loadUsage = (signal: AbortSignal): Promise<UsageList> => getJson<UsageList>(apiPath("/usage"), signal);
const hours = (value: number): string => value.toFixed(value < 10 ? 2 : 0);

export function Usage(): JSX.Element {
  const usage = useLoaded("usage", loadUsage);
  return (
    <Card
      title="Usage by week"
      aside={
        <a href={apiPath("/usage.csv")} download="usage.csv">
          CSV
        </a>
      }
    >
      <Shown of={usage}>{({ items }) => (items.length ? <Table of={items} /> : <Empty>Nothing yet.</Empty>)}</Shown>
    </Card>
  );
}

function Table({ of }: { of: UsageOfWeek[] }): JSX.Element {
  const hasCost = of.some(({ cost }) => cost > 0);
  const columns: Column[] = [
    "Slot hours",
    "GPU hours",
    ...(hasCost ? ["Cost"] : []),
    "Kept of these jobs",
    "Kept of all",
  ].map((name) => ({ name, isNumber: true }));
  return (
    <DataTable
      caption="Usage by week"
      columns={[{ name: "Week" }, { name: "Person" }, ...columns]}
      rows={of.map((each) => [
        each.week,
        <Owner name={each.owner} />,
        hours(each.slot_hours),
        hours(each.gpu_hours),
        ...(hasCost ? [each.cost.toFixed(2)] : []),
        bytes(each.week_bytes),
        each.job_bytes === null ? "" : bytes(each.job_bytes),
      ])}
    />
  );
}

function Owner({ name }: { name: string }): JSX.Element {
  return name ? (
    <a href={`/jobs?owner=${encodeURIComponent(name)}`}>{name}</a>
  ) : (
    <span class="sub">the server's own</span>
  );
}
