// The workers of a node, as they were when they were last measured.

import type { JSX } from "preact";
import { DataTable } from "../../../charts/twin";
import { bytes, count } from "../../../words/numbers";
import { numberIn, type Row } from "../../../words/table";
import { clock } from "../../../words/times";

const MB = 2 ** 20;

export function Workers({ rows }: { rows: Row[] }): JSX.Element {
  const last = new Map(rows.map((row) => [row["Process"], row]));
  const most = new Map<string | undefined, number>();
  for (const row of rows)
    most.set(row["Process"], Math.max(most.get(row["Process"]) ?? 0, numberIn(row, "Memory Rss (MB)") || 0));
  return (
    <DataTable
      caption="Workers"
      columns={[
        { name: "Process" },
        { name: "Measured", isNumber: true },
        { name: "CPU", isNumber: true },
        { name: "Memory", isNumber: true },
        { name: "Most memory", isNumber: true },
        { name: "Threads", isNumber: true },
        { name: "Read", isNumber: true },
        { name: "Written", isNumber: true },
      ]}
      rows={[...last].map(([name, row]) => [
        name,
        clock(`${row["Utc Time"]!}Z`),
        `${count(numberIn(row, "Cpu Percent"))} %`,
        bytes(numberIn(row, "Memory Rss (MB)") * MB),
        bytes(most.get(name)! * MB),
        row["# of Threads"],
        bytes(numberIn(row, "Disk Io Read (MB)") * MB),
        bytes(numberIn(row, "Disk Io Write (MB)") * MB),
      ])}
    />
  );
}
