// The plane of a chart over time: where a value is on it, and the lines and labels around.

import type { JSX } from "preact";
import { timeTicks, valueTicks } from "./scale";

export interface Plot {
  left: number;
  right: number;
  top: number;
  bottom: number;
  values: number[];
  times: number[];
  x: (time: number) => number;
  y: (value: number) => number;
  timeAt: (x: number) => number;
}

const LEFT = 52;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 24;
const LABEL = 84;

export function plotOf(width: number, height: number, from: number, to: number, most: number): Plot {
  const [right, bottom] = [width - RIGHT, height - BOTTOM];
  const values = valueTicks(most);
  const highest = values.at(-1)!;
  const span = to - from || 1;
  return {
    left: LEFT,
    right,
    top: TOP,
    bottom,
    values,
    times: timeTicks(from, to, Math.floor((right - LEFT) / LABEL), -60 * new Date(from * 1000).getTimezoneOffset()),
    x: (time) => LEFT + ((time - from) / span) * (right - LEFT),
    y: (value) => bottom - (value / highest) * (bottom - TOP),
    timeAt: (x) => from + ((x - LEFT) / (right - LEFT)) * span,
  };
}

export function Axes({ plot, format }: { plot: Plot; format: (value: number) => string }): JSX.Element {
  const step = plot.times[1] === undefined ? 1 : plot.times[1] - plot.times[0]!;
  const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: step % 60 ? "medium" : "short" });
  return (
    <g class="axes">
      {plot.values.map((value) => (
        <g key={value}>
          <line x1={plot.left} x2={plot.right} y1={plot.y(value)} y2={plot.y(value)} />
          <text x={plot.left - 8} y={plot.y(value) + 4} text-anchor="end">
            {format(value)}
          </text>
        </g>
      ))}
      {plot.times.map((time) => (
        <text key={time} x={plot.x(time)} y={plot.bottom + 17} text-anchor="middle">
          {clock.format(time * 1000)}
        </text>
      ))}
    </g>
  );
}
