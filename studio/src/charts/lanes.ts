// How a timeline is drawn: a lane for each worker, what it did in each stretch of time from left to right.

import type { DoingNow, Lane, RunningTry, Timeline } from "../api/types";
import type { Colors } from "./colors";

export const LANE = 24;
const BAR = 16;

interface Window {
  x: (seconds: number) => number;
  width: number;
}

export function windowOf({ begin_s, end_s }: Timeline, width: number): Window {
  const span = end_s - begin_s || 1;
  return { x: (seconds) => ((seconds - begin_s) / span) * width, width };
}

export function drawLanes(
  context: CanvasRenderingContext2D,
  colors: Colors,
  timeline: Timeline,
  width: number,
  shown: number | undefined,
): void {
  const window = windowOf(timeline, width);
  timeline.lanes.forEach((lane, index) => {
    const top = index * LANE + (LANE - BAR) / 2;
    drawPresence(context, colors, lane, window, top);
    if (lane.spans) drawTries(context, colors, lane.spans, window, top);
    drawBuckets(context, colors, timeline, lane, window, top);
    if (lane.now) drawNow(context, colors, lane.now, timeline, window, top);
    if (index === shown) {
      context.strokeStyle = colors.text;
      context.strokeRect(0.5, top - 1.5, width - 1, BAR + 3);
    }
  });
}

/** From the begin of a worker to its end: where nothing else is drawn upon it, it was idle. */
function drawPresence(
  context: CanvasRenderingContext2D,
  colors: Colors,
  lane: Lane,
  { x, width }: Window,
  top: number,
): void {
  const [left, right] = [Math.max(0, x(lane.begin_s)), Math.min(width, x(lane.end_s))];
  context.fillStyle = colors.waiting;
  if (right > left) context.fillRect(left, top, right - left, BAR);
}

function drawTries(
  context: CanvasRenderingContext2D,
  colors: Colors,
  spans: NonNullable<Lane["spans"]>,
  { x }: Window,
  top: number,
): void {
  spans.begin_s.forEach((begin, index) => {
    const load = spans.load_s[index]!;
    const [left, middle, right] = [x(begin), x(begin + load), x(begin + spans.elapsed_s[index]!)];
    const gap = right - left > 3 ? 1 : 0;
    context.fillStyle = colors.load;
    context.fillRect(left, top, Math.max(0, middle - left), BAR);
    const isGood = spans.outcome[index] === "completed";
    context.fillStyle = isGood ? colors.done : colors.failed;
    // What failed is lower, too: nobody needs the color.
    const inset = isGood ? 0 : BAR / 2;
    context.fillRect(middle, top + inset, Math.max(1, right - middle - gap), BAR - inset);
  });
}

/** Init always; loading and running where tries are too many to be drawn one by one, as shares of the height. */
function drawBuckets(
  context: CanvasRenderingContext2D,
  colors: Colors,
  timeline: Timeline,
  lane: Lane,
  { x }: Window,
  top: number,
): void {
  // On whole pixels: buckets beside each other would show stripes where they share one.
  const edge = (bucket: number): number => Math.round(x(timeline.begin_s + bucket * timeline.bucket_s));
  lane.init.forEach((_, bucket) => {
    const [left, right] = [edge(bucket), edge(bucket + 1)];
    let bottom = top + BAR;
    const stack = (seconds: number, color: string): void => {
      const height = Math.min(1, seconds / timeline.bucket_s) * BAR;
      context.fillStyle = color;
      context.fillRect(left, bottom - height, right - left, height);
      bottom -= height;
    };
    if (!lane.spans) {
      stack(lane.run[bucket]!, colors.done);
      stack(lane.load[bucket]!, colors.load);
    }
    if (lane.init[bucket]) stack(lane.init[bucket]!, colors.init);
  });
}

/** What hasn't ended yet: in the colour of what it is, open to the right. */
function drawNow(
  context: CanvasRenderingContext2D,
  colors: Colors,
  { doing, since_s, tries }: DoingNow,
  timeline: Timeline,
  { x, width }: Window,
  top: number,
): void {
  const bar = (from: number, to: number, color: string): void => {
    const [left, right] = [Math.max(0, x(from)), Math.min(width, x(to))];
    if (right <= left) return;
    context.fillStyle = color;
    context.globalAlpha = 0.55;
    context.fillRect(left, top, Math.max(1, right - left), BAR);
    context.globalAlpha = 1;
    context.strokeStyle = color;
    context.lineWidth = 2;
    context.setLineDash([4, 3]);
    context.strokeRect(left + 1, top + 1, Math.max(1, right - left - 2), BAR - 2);
    context.setLineDash([]);
    context.lineWidth = 1;
  };
  const end = timeline.length_s;
  if (doing === "init") bar(since_s, end, colors.init);
  if (doing === "waiting_for_data") bar(since_s, end, colors.load);
  for (const { begin_s, load_s } of tries) {
    const loaded = load_s === null ? end : begin_s + load_s;
    bar(begin_s, loaded, colors.load);
    bar(loaded, end, colors.running);
  }
}

/** What a worker did at a time when it ran no try: the gap has a name. */
export function gapAt(timeline: Timeline, lane: Lane, seconds: number): string {
  if (seconds < lane.begin_s) return "no worker here yet";
  if (seconds > lane.end_s) return "the worker has ended";
  const { now } = lane;
  if (now && seconds >= now.since_s && !now.tries.length) return NOW[now.doing];
  const bucket = Math.floor((seconds - timeline.begin_s) / timeline.bucket_s);
  if (lane.init[bucket]) return "init()";
  return "idle: no mini-batch to run";
}

export const NOW: Record<DoingNow["doing"], string> = {
  init: "in init()",
  loading: "reads its data",
  running: "in run()",
  waiting_for_data: "waits for data: files are on their way to the node",
  idle: "idle: no mini-batch to run",
  ending: "in shutdown()",
};

/** The mini-batch that runs now in a lane, if it did at that time. */
export function runningAt(lane: Lane, seconds: number): RunningTry | undefined {
  return lane.now?.tries.find(({ begin_s }) => seconds >= begin_s);
}

/** The try at a time in a lane, if tries are drawn one by one. */
export function tryAt(lane: Lane, seconds: number): number | undefined {
  const { spans } = lane;
  const index = spans?.begin_s.findIndex(
    (begin, each) => seconds >= begin && seconds <= begin + spans.elapsed_s[each]!,
  );
  return index === undefined || index < 0 ? undefined : index;
}
