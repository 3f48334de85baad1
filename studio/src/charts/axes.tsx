// The plane of a chart over time: where a value is on it, and the lines and labels around.

import type { JSX } from "preact";
import { written, zone } from "../words/times";
import { timeTicks } from "./scale";

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

const LETTER = 6.4;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 24;
const LABEL = 92;

export function plotOf(
  width: number,
  height: number,
  from: number,
  to: number,
  values: number[],
  format: (value: number) => string,
): Plot {
  const left = 14 + LETTER * Math.max(...values.map((value) => format(value).length));
  const [right, bottom] = [width - RIGHT, height - BOTTOM];
  const highest = values.at(-1)!;
  const span = to - from || 1;
  return {
    left,
    right,
    top: TOP,
    bottom,
    values,
    times: timeTicks(from, to, Math.floor((right - left) / LABEL), offsetAt(from)),
    x: (time) => left + ((time - from) / span) * (right - left),
    y: (value) => bottom - (value / highest) * (bottom - TOP),
    timeAt: (x) => from + ((x - left) / (right - left)) * span,
  };
}

/** Seconds by which the zone that is chosen is ahead of UTC. */
export const offsetAt = (time: number): number =>
  zone.value === "UTC" ? 0 : -60 * new Date(time * 1000).getTimezoneOffset();

/** As exact as labels that are so many seconds apart have to be. */
export function clockFor(step: number): Intl.DateTimeFormat {
  const digits = step < 0.01 ? 3 : step < 0.1 ? 2 : 1;
  if (step < 1)
    return written({ hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: digits });
  return written({ timeStyle: step % 60 ? "medium" : "short" });
}

/** No label is cut off at an end of the axis. */
const anchorAt = (x: number, { left, right }: Plot): string =>
  x > right - LABEL / 3 ? "end" : x < left + LABEL / 4 ? "start" : "middle";

export function Axes({ plot, format }: { plot: Plot; format: (value: number) => string }): JSX.Element {
  const step = plot.times[1] === undefined ? 1 : plot.times[1] - plot.times[0]!;
  const clock = clockFor(step);
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
        <text key={time} x={plot.x(time)} y={plot.bottom + 17} text-anchor={anchorAt(plot.x(time), plot)}>
          {clock.format(time * 1000)}
        </text>
      ))}
    </g>
  );
}
