// A node in time: what it had, and what of it was used.

import type { JSX } from "preact";
import { LineChart, type Line } from "../../../charts/line_chart";
import { Twin } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { bytes } from "../../../words/numbers";
import { numberIn, type Row } from "../../../words/table";
import { clock } from "../../../words/times";

const MB = 2 ** 20;
const MOST_POINTS = 400;

interface Chart {
  title: string;
  lines: Line[];
  format: (value: number) => string;
  most?: number;
  hasBytes?: boolean;
}

export function NodeCharts({ node, rows }: { node: string; rows: Row[] }): JSX.Element {
  const shown = thinned(rows);
  const times = shown.map((row) => Date.parse(`${row["Utc Time"]!}Z`) / 1000);
  return (
    <div class="charts">
      {chartsOf(shown, times).map(({ title, lines, format, most, hasBytes = false }) => (
        <Card key={title} title={title}>
          <Twin
            caption={`${title} of ${node}`}
            columns={[{ name: "Time" }, ...lines.map(({ name }) => ({ name, isNumber: true }))]}
            rows={() =>
              times.map((time, index) => [
                clock(time * 1000),
                ...lines.map(({ values }) => (values[index] === null ? "–" : format(values[index]!))),
              ])
            }
          >
            <LineChart
              label={`${title} of ${node}`}
              times={times}
              lines={lines}
              format={format}
              height={150}
              hasBytes={hasBytes}
              {...(most === undefined ? {} : { most })}
            />
          </Twin>
        </Card>
      ))}
    </div>
  );
}

function chartsOf(rows: Row[], times: number[]): Chart[] {
  const plain = (column: string, factor = 1): (number | null)[] =>
    rows.map((row) => finite(numberIn(row, column) * factor));
  /** Of a sum that grows: by how much each second. */
  const perSecond = (column: string, factor = 1): (number | null)[] =>
    rows.map((row, index) => {
      const before = rows[index - 1];
      return before
        ? finite(((numberIn(row, column) - numberIn(before, column)) * factor) / (times[index]! - times[index - 1]!))
        : null;
    });
  /** The same for seconds, in percent; the clocks of both don't agree to the millisecond. */
  const share = (column: string): (number | null)[] =>
    perSecond(column, 100).map((value) => value && Math.min(100, value));
  const inBytes = (value: number): string => `${bytes(value)}/s`;
  const inPercent = (value: number): string => `${Math.round(value)} %`;
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

const finite = (value: number): number | null => (Number.isFinite(value) && value >= 0 ? value : null);

/** Every n-th row, and the last one: a screen has room for some hundreds. */
function thinned(rows: Row[]): Row[] {
  const step = Math.ceil(rows.length / MOST_POINTS);
  return rows.filter((_, index) => index % step === 0 || index === rows.length - 1);
}
