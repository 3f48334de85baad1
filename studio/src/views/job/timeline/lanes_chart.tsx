// The lanes of a timeline on a canvas: drag to look closer at a stretch of time, or use the keys.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Job, Lane, RunningTry, Timeline } from "../../../api/types";
import { useCanvas } from "../../../charts/canvas";
import { clockFor, offsetAt } from "../../../charts/axes";
import { drawLanes, gapAt, LANE, NOW, runningAt, tryAt, windowOf } from "../../../charts/lanes";
import { timeTicks } from "../../../charts/scale";
import { Twin } from "../../../charts/twin";
import { useWidth } from "../../../charts/width";
import { go } from "../../../shell/router";
import { count, counted, percent } from "../../../words/numbers";
import { clock, duration, zoneName } from "../../../words/times";
import { linkToMiniBatch } from "../links";

interface Props {
  job: Job;
  timeline: Timeline;
  zoom: (from: number | undefined, to: number | undefined) => void;
}

interface Point {
  lane: number;
  seconds: number;
}

export function Lanes({ job, timeline, zoom }: Props): JSX.Element {
  const numbers = ["Tries", "Failed", "init()", "Loading", "Running", "Busy"];
  const isLive = timeline.lanes.some(({ now }) => now);
  return (
    <Twin
      caption="Workers"
      columns={[
        { name: "Worker" },
        ...numbers.map((name) => ({ name, isNumber: true })),
        ...(isLive ? [{ name: "Now" }] : []),
      ]}
      rows={() =>
        timeline.lanes.map((lane) => {
          const [init, load, run] = [lane.init, lane.load, lane.run].map((values) =>
            values.reduce((sum, value) => sum + value, 0),
          ) as [number, number, number];
          const present = Math.min(lane.end_s, timeline.end_s) - Math.max(lane.begin_s, timeline.begin_s);
          const busy = present > 0 ? percent(Math.min(1, (load + run) / present)) : "–";
          return [
            nameOf(lane),
            count(lane.tries),
            count(lane.failed_tries),
            duration(init),
            duration(load),
            duration(run),
            busy,
            ...(isLive ? [lane.now ? NOW[lane.now.doing] : "–"] : []),
          ];
        })
      }
    >
      <Chart job={job} timeline={timeline} zoom={zoom} />
      <ul class="key">
        <li class="init">init()</li>
        <li class="load">waiting for data</li>
        <li class="done">run() has ended</li>
        {isLive && <li class="running">in run() now (dashed)</li>}
        <li class="failed">failed (half as high)</li>
        <li class="waiting">idle</li>
      </ul>
    </Twin>
  );
}

const nameOf = (lane: Lane): string => `${lane.node}/${lane.process}`;

/** Workers of a node differ in their last digits, which stay in sight on a phone. */
const shortNameOf = ({ node, process }: Lane): string => `${node} #${process.replace(/^\D+0*(?=\d)/, "")}`;

function Chart({ job, timeline, zoom }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const [at, setAt] = useState<Point | undefined>(undefined);
  const [dragged, drag] = useState<number | undefined>(undefined);
  const height = timeline.lanes.length * LANE;
  const span = timeline.end_s - timeline.begin_s;
  useCanvas(canvas, width, height, (context, colors) => drawLanes(context, colors, timeline, width, at?.lane), [
    timeline,
    at?.lane,
  ]);

  const pointOf = (event: MouseEvent): Point => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    const lane = Math.max(0, Math.min(timeline.lanes.length - 1, Math.floor((event.clientY - top) / LANE)));
    return { lane, seconds: timeline.begin_s + ((event.clientX - left) / width) * span };
  };
  const move = (by: number): void => {
    const begin = Math.max(0, Math.min(timeline.length_s - span, timeline.begin_s + by * span));
    zoom(begin, begin + span);
  };
  const scale = (factor: number): void => {
    const middle = timeline.begin_s + span / 2;
    zoom(Math.max(0, middle - (span * factor) / 2), Math.min(timeline.length_s, middle + (span * factor) / 2));
  };
  const choose = (by: number): void => {
    const lane = Math.max(
      0,
      Math.min(timeline.lanes.length - 1, (at?.lane ?? (by > 0 ? -1 : timeline.lanes.length)) + by),
    );
    setAt({ lane, seconds: NaN });
  };
  const press = (event: KeyboardEvent): void => {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => move(-0.25),
      ArrowRight: () => move(0.25),
      ArrowUp: () => choose(-1),
      ArrowDown: () => choose(1),
      "+": () => scale(0.5),
      "-": () => scale(2),
      "0": () => zoom(undefined, undefined),
    };
    const act = acts[event.key];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  };
  const release = (event: PointerEvent): void => {
    const { lane, seconds } = pointOf(event);
    const from = dragged;
    drag(undefined);
    if (from === undefined) return;
    if (Math.abs(seconds - from) > span / 100) {
      zoom(Math.min(from, seconds), Math.max(from, seconds));
      return;
    }
    const own = timeline.lanes[lane]!;
    const index = tryAt(own, seconds);
    const id = index === undefined ? runningAt(own, seconds)?.mini_batch : own.spans!.mini_batch[index]!;
    if (id !== undefined) go(linkToMiniBatch(job.id, id));
  };

  return (
    <div class="timeline">
      <ul class="lane-names" aria-hidden="true">
        {timeline.lanes.map((lane) => (
          <li key={nameOf(lane)} title={nameOf(lane)}>
            {shortNameOf(lane)}
          </li>
        ))}
      </ul>
      <div
        ref={box}
        tabIndex={0}
        role="group"
        aria-label={`${counted(timeline.lanes.length, "worker")}. Up and down choose one, left and right move in time, plus and minus zoom, 0 shows all.`}
        onKeyDown={press}
        onBlur={() => setAt(undefined)}
      >
        <canvas
          ref={canvas}
          onPointerDown={(event) => drag(pointOf(event).seconds)}
          onPointerMove={(event) => setAt(pointOf(event))}
          onPointerUp={release}
          onPointerLeave={() => {
            setAt(undefined);
            drag(undefined);
          }}
        />
        {dragged !== undefined && at && <Selection from={dragged} to={at.seconds} timeline={timeline} width={width} />}
        {width > 0 && <Ticks timeline={timeline} width={width} />}
      </div>
      <p class="readout" aria-live="polite">
        {at ? told(timeline, at) : "Drag to look closer at a stretch of time; click a try to open its mini-batch."}
      </p>
    </div>
  );
}

function Selection({
  from,
  to,
  timeline,
  width,
}: {
  from: number;
  to: number;
  timeline: Timeline;
  width: number;
}): JSX.Element {
  const { x } = windowOf(timeline, width);
  return (
    <i class="selection" style={{ left: `${x(Math.min(from, to))}px`, width: `${Math.abs(x(to) - x(from))}px` }} />
  );
}

/** About how wide a letter of a label is. */
const LETTER = 7;

/** Times of day; the first one says the zone. None is cut off at the end, and none touches the one before it. */
function Ticks({ timeline, width }: { timeline: Timeline; width: number }): JSX.Element {
  const { x } = windowOf(timeline, width);
  const start = startOf(timeline);
  const times = timeTicks(
    start + timeline.begin_s,
    start + timeline.end_s,
    Math.max(2, Math.floor(width / 110)),
    offsetAt(start),
  );
  const format = clockFor((times[1] ?? times[0] ?? 0) - (times[0] ?? 0) || 1);
  const labels: { left: number; text: string }[] = [];
  let end = 0;
  for (const time of times) {
    const left = x(time - start);
    const text = `${format.format(time * 1000)}${labels.length ? "" : ` ${zoneName()}`}`;
    const right = left + LETTER * text.length;
    if (left < end || right > width) continue;
    labels.push({ left, text });
    end = right + LETTER;
  }
  return (
    <div class="ticks" aria-hidden="true">
      {labels.map(({ left, text }) => (
        <span key={left} style={{ left: `${left}px` }}>
          {text}
        </span>
      ))}
    </div>
  );
}

const startOf = (timeline: Timeline): number => (timeline.start ? Date.parse(timeline.start) / 1000 : 0);

function told(timeline: Timeline, { lane, seconds }: Point): string {
  const own = timeline.lanes[lane];
  if (!own) return "";
  const doing = own.now ? `, now ${NOW[own.now.doing]}` : "";
  if (Number.isNaN(seconds))
    return `${nameOf(own)}: ${counted(own.tries, "try", "tries")}${own.failed_tries ? `, ${count(own.failed_tries)} failed` : ""}${doing}`;
  const where = `${nameOf(own)} at ${clock((startOf(timeline) + seconds) * 1000)}`;
  const index = tryAt(own, seconds);
  if (index !== undefined && own.spans) {
    const { mini_batch, outcome, run_s, load_s } = own.spans;
    const loading = load_s[index]! > 0 ? `, waited ${duration(load_s[index]!)} for its data` : "";
    return `${where}: mini-batch ${count(mini_batch[index]!)} ${outcome[index] === "completed" ? "completed" : "failed"}, ran ${duration(run_s[index]!)}${loading}`;
  }
  const running = runningAt(own, seconds);
  if (running) return `${where}: ${runningTold(running, timeline.length_s)}`;
  if (!own.spans && seconds <= own.end_s && seconds >= own.begin_s)
    return `${where}: ${counted(own.tries, "try", "tries")} in this window; look closer to see each`;
  return `${where}: ${gapAt(timeline, own, seconds)}`;
}

/** A try that has not ended, in words. */
export function runningTold({ mini_batch, begin_s, load_s, times_median }: RunningTry, now: number): string {
  const name = `mini-batch ${count(mini_batch)}`;
  if (load_s === null) return `${name} has waited ${duration(now - begin_s)} for its data`;
  const slow = times_median !== null && times_median >= 3 ? `, ${times_median.toFixed(1)} times the median` : "";
  return `${name} has been in run() for ${duration(Math.max(0, now - begin_s - load_s))}${slow}`;
}
