// Lines over time, as wide as their place. Drawn as SVG: so it prints, and follows the page's colors by itself.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { clock, zoneName } from "../words/times";
import { Axes, plotOf, type Plot } from "./axes";
import { byteTicks, valueTicks } from "./scale";
import { useWidth } from "./width";

export interface Line {
  name: string;
  /** One of the classes of charts.css. */
  kind: "first" | "second" | "third" | "bad";
  values: (number | null)[];
  isFilled?: boolean;
  /** It is expected, and has not happened yet. */
  isDashed?: boolean;
}

interface Props {
  label: string;
  /** Seconds since the epoch. */
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  height?: number;
  /** The highest value that the axis must have room for. */
  most?: number;
  /** The values are bytes, or bytes a second. */
  hasBytes?: boolean;
}

export function LineChart({
  label,
  times,
  lines,
  format,
  height = 180,
  most = 0,
  hasBytes = false,
}: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [at, setAt] = useState<number | undefined>(undefined);
  const last = times.length - 1;
  const top = Math.max(most, ...lines.flatMap((line) => line.values.map((value) => value ?? 0)));
  const plot = plotOf(
    width,
    height,
    times[0] ?? 0,
    times[last] ?? 1,
    hasBytes ? byteTicks(top) : valueTicks(top),
    format,
  );
  const shown = at === undefined ? undefined : Math.min(at, last);

  const point = (event: PointerEvent): void => {
    const x = event.clientX - box.current!.getBoundingClientRect().left;
    setAt(nearest(times, plot.timeAt(x)));
  };
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setAt(Math.max(0, Math.min(last, (at ?? (by > 0 ? -1 : last + 1)) + by)));
  };

  return (
    <div
      class="line-chart"
      ref={box}
      tabIndex={0}
      role="group"
      aria-label={`${label}. Left and right show single values.`}
      onPointerMove={point}
      onPointerLeave={() => setAt(undefined)}
      onBlur={() => setAt(undefined)}
      onKeyDown={press}
    >
      {width > 0 && (
        <svg width={width} height={height} aria-hidden="true">
          <Axes plot={plot} format={format} />
          {lines.map((line) => (
            <Path key={line.name} line={line} times={times} plot={plot} />
          ))}
          {shown !== undefined && (
            <line class="cursor" x1={plot.x(times[shown]!)} x2={plot.x(times[shown]!)} y1={plot.top} y2={plot.bottom} />
          )}
        </svg>
      )}
      <p class="legend" aria-live="polite">
        {lines.map(({ name, kind, values }) => (
          <span key={name} class={kind}>
            <i />
            {name}
            {shown !== undefined && <b>{values[shown] === null ? "–" : format(values[shown]!)}</b>}
          </span>
        ))}
        <span class="at">{shown === undefined ? zoneName() : clock(times[shown]! * 1000)}</span>
      </p>
    </div>
  );
}

function Path({ line, times, plot }: { line: Line; times: number[]; plot: Plot }): JSX.Element {
  let path = "";
  let isDown = false;
  line.values.forEach((value, index) => {
    if (value !== null) path += `${isDown ? "L" : "M"}${plot.x(times[index]!).toFixed(1)} ${plot.y(value).toFixed(1)}`;
    isDown = value !== null;
  });
  const [first, last] = [
    line.values.findIndex((value) => value !== null),
    line.values.findLastIndex((value) => value !== null),
  ];
  const ground = (index: number): string => `${plot.x(times[index] ?? 0).toFixed(1)} ${plot.bottom}`;
  const area = `${path}L${ground(last)}L${ground(first)}Z`;
  return (
    <g class={line.kind}>
      {line.isFilled && <path class="area" d={area} />}
      <path class={line.isDashed ? "line dashed" : "line"} d={path} />
      {line.values.map(
        (value, index) =>
          value !== null &&
          isAlone(line, index) && <circle key={index} cx={plot.x(times[index]!)} cy={plot.y(value)} r="2.5" />,
      )}
    </g>
  );
}

/** Without a neighbor, there is no line to it. */
const isAlone = ({ values }: Line, index: number): boolean =>
  (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null;

function nearest(times: number[], time: number): number {
  const after = times.findIndex((each) => each >= time);
  if (after === 0 || after === -1) return after === 0 ? 0 : times.length - 1;
  return time - times[after - 1]! < times[after]! - time ? after - 1 : after;
}
