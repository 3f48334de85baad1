// A node in time: what it had, and what of it was used.

import type { JSX } from "preact";
import { bytes } from "../../../words/numbers";
import { numberIn, type Row } from "../../../words/table";
import { inPercent, recorded, thinned, TimeChart, type TimeChartProps } from "./time_chart";

const MB = 2 ** 20;

type Chart = Omit<TimeChartProps, "caption" | "times">;

export function NodeCharts({ node, rows: all }: { node: string; rows: Row[] }): JSX.Element {
  const { rows, times } = thinned(all);
  return (
    <div class="charts">
      {chartsOf(rows, times).map((chart) => (
        <TimeChart key={chart.title} caption={`${chart.title} of ${node}`} times={times} {...chart} />
      ))}
    </div>
  );
}

function chartsOf(rows: Row[], times: number[]): Chart[] {
  const plain = (column: string, factor = 1): (number | null)[] =>
    rows.map((row) => recorded(numberIn(row, column) * factor));
  /** Of a sum that grows: by how much each second. */
  const perSecond = (column: string, factor = 1): (number | null)[] =>
    rows.map((row, index) => {
      const before = rows[index - 1];
      return before
        ? recorded(((numberIn(row, column) - numberIn(before, column)) * factor) / (times[index]! - times[index - 1]!))
        : null;
    });
  /** The same for seconds, in percent; the clocks of both don't agree to the millisecond. */
  const share = (column: string): (number | null)[] =>
    perSecond(column, 100).map((value) => value && Math.min(100, value));
  const inBytes = (value: number): string => `${bytes(value)}/s`;
  const charts: Chart[] = [
    {
      title: "CPU",
      lines: [{ name: "in use", kind: "first", values: plain("Cpu Percent"), isFilled: true }],
      format: inPercent,
      most: 100,
    },
    {
      title: "Memory",
      lines: [{ name: "in use", kind: "first", values: plain("Memory Used (MB)", MB), isFilled: true }],
      format: bytes,
      hasBytes: true,
      most: numberIn(rows[0]!, "Memory Total (MB)") * MB,
    },
    {
      title: "Disk",
      lines: [
        { name: "read", kind: "first", values: perSecond("Disk Io Read (MB)", MB) },
        { name: "written", kind: "second", values: perSecond("Disk Io Write (MB)", MB) },
      ],
      format: inBytes,
      hasBytes: true,
    },
    {
      title: "Network",
      lines: [
        { name: "received", kind: "first", values: perSecond("Network Recv (MB)", MB) },
        { name: "sent", kind: "second", values: perSecond("Network Sent (MB)", MB) },
      ],
      format: inBytes,
      hasBytes: true,
    },
    {
      title: "Pressure: the share of time in which a process waits",
      lines: [
        { name: "for a CPU", kind: "first", values: share("Cpu Pressure (s)") },
        { name: "for I/O", kind: "second", values: share("Io Pressure (s)") },
        { name: "for memory", kind: "third", values: share("Memory Pressure (s)") },
      ],
      format: inPercent,
      most: 10,
    },
  ];
  return charts.filter(({ lines }) => lines.some(({ values }) => values.some((value) => value !== null)));
}
