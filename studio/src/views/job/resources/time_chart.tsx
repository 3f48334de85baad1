// What was recorded of a part of a node, in time: a chart with its twin.

import type { JSX } from "preact";
import { LineChart, type Line } from "../../../charts/line_chart";
import { Twin } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import type { Row } from "../../../words/table";
import { clock } from "../../../words/times";

/** A screen has room for some hundreds. */
const MOST_POINTS = 400;

export interface TimeChartProps {
  title: string;
  /** Says whose it is, where the title doesn't. */
  caption?: string;
  /** Seconds since the epoch. */
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  /** The highest value that the axis must have room for. */
  most?: number;
  hasBytes?: boolean;
}

export function TimeChart({ title, caption = title, ...chart }: TimeChartProps): JSX.Element {
  const { times, lines, format } = chart;
  return (
    <Card title={title}>
      <Twin
        caption={caption}
        columns={[{ name: "Time" }, ...lines.map(({ name }) => ({ name, isNumber: true }))]}
        rows={() =>
          times.map((time, index) => [
            clock(time * 1000),
            ...lines.map(({ values }) => (values[index] === null ? "–" : format(values[index]!))),
          ])
        }
      >
        <LineChart label={caption} height={150} {...chart} />
      </Twin>
    </Card>
  );
}

/** Of the records of a node or a GPU, those that are drawn: every n-th one, and the last. */
export function thinned(rows: Row[]): { rows: Row[]; times: number[] } {
  const step = Math.ceil(rows.length / MOST_POINTS);
  const drawn = rows.filter((_, index) => index % step === 0 || index === rows.length - 1);
  return { rows: drawn, times: drawn.map((row) => Date.parse(`${row["Utc Time"]!}Z`) / 1000) };
}

/** A value as a line has it; null: it was not recorded. */
export const recorded = (value: number): number | null => (Number.isFinite(value) && value >= 0 ? value : null);

export const inPercent = (value: number): string => `${Math.round(value)} %`;
