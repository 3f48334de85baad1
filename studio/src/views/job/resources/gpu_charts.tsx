// The GPUs of a node in time, each by itself.

import type { JSX } from "preact";
import { count } from "../../../words/numbers";
import { numberIn, type Row } from "../../../words/table";
import { inPercent, recorded, thinned, TimeChart } from "./time_chart";

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

function OneGpu({ gpu, rows: all }: { gpu: string; rows: Row[] }): JSX.Element {
  const { rows, times } = thinned(all);
  const inUse = rows.map((row) => recorded(numberIn(row, "Utilization Percent")));
  const memory = rows.map((row) =>
    recorded((100 * numberIn(row, "Memory Used (MB)")) / numberIn(row, "Memory Total (MB)")),
  );
  return (
    <TimeChart
      title={`GPU ${gpu} (${rows[0]!["Name"] ?? ""})`}
      times={times}
      lines={[
        { name: "in use", kind: "first", values: inUse, isFilled: true },
        { name: "memory", kind: "second", values: memory },
      ]}
      format={inPercent}
      most={100}
    />
  );
}
