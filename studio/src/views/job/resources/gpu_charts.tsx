// The GPUs of a node in time, each by itself.

import type { JSX } from "preact";
import { LineChart } from "../../../charts/line_chart";
import { Twin } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { count } from "../../../words/numbers";
import { numberIn, type Row } from "../../../words/table";
import { clock } from "../../../words/times";

const MOST_GPUS = 16;

export function GpuCharts({ rows }: { rows: Row[] }): JSX.Element | null {
  const gpus = [...Map.groupBy(rows, (row) => row["Gpu"] ?? "")];
  if (!gpus.length) return null;
  const others = gpus.length - MOST_GPUS;
  return (
    <>
      <div class="charts">
        {gpus.slice(0, MOST_GPUS).map(([gpu, own]) => (
          <OneGpu key={gpu} gpu={gpu} rows={own} />
        ))}
      </div>
      {others > 0 && <p class="hint apart">and {count(others)} more</p>}
    </>
  );
}

function OneGpu({ gpu, rows }: { gpu: string; rows: Row[] }): JSX.Element {
  const title = `GPU ${gpu} (${rows[0]!["Name"] ?? ""})`;
  const times = rows.map((row) => Date.parse(`${row["Utc Time"]!}Z`) / 1000);
  const values = (of: (row: Row) => number): (number | null)[] =>
    rows.map((row) => (Number.isFinite(of(row)) ? of(row) : null));
  const lines = [
    {
      name: "in use",
      kind: "first" as const,
      values: values((row) => numberIn(row, "Utilization Percent")),
      isFilled: true,
    },
    {
      name: "memory",
      kind: "second" as const,
      values: values((row) => (100 * numberIn(row, "Memory Used (MB)")) / numberIn(row, "Memory Total (MB)")),
    },
  ];
  const format = (value: number): string => `${Math.round(value)} %`;
  return (
    <Card title={title}>
      <Twin
        caption={title}
        columns={[{ name: "Time" }, ...lines.map(({ name }) => ({ name, isNumber: true }))]}
        rows={() =>
          times.map((time, index) => [
            clock(time * 1000),
            ...lines.map((line) => (line.values[index] === null ? "–" : format(line.values[index]!))),
          ])
        }
      >
        <LineChart label={title} times={times} lines={lines} format={format} height={150} most={100} />
      </Twin>
    </Card>
  );
}
