// Where on an axis the labels stand: at round values.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  1,
  2,
  5,
  10,
  15,
  30,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
];

/** A round step such that about `wanted` of them are in `span`. */
export function roundStep(span: number, wanted: number): number {
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 2.5, 5, 10].find((each) => each * power >= rough) ?? 10);
}

/** From 0 up to the first round value that is not below `most`. */
export function valueTicks(most: number, wanted = 4): number[] {
  const step = roundStep(most > 0 ? most : 1, wanted);
  const count = Math.max(1, Math.ceil((most || 1) / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}

/** The same for bytes, whose round values are multiples of powers of 1,024. */
export function byteTicks(most: number): number[] {
  const unit = 1024 ** Math.floor(Math.log2(Math.max(1, most)) / 10);
  return valueTicks(most / unit).map((each) => each * unit);
}

/** Round times between two, in seconds, two at least; `offset` is what is added to make them round, such as that of a
 * time zone. */
export function timeTicks(from: number, to: number, wanted: number, offset = 0): number[] {
  const rough = (to - from) / Math.max(1, wanted);
  const step =
    rough < 1
      ? roundStep(to - from, wanted)
      : (TIME_STEPS.find((each) => each >= rough) ?? Math.ceil(rough / DAY) * DAY);
  const ticks = multiples(from, to, step, offset);
  // One label alone says nothing of how long a stretch is.
  const smaller = TIME_STEPS.filter((each) => each < step).at(-1);
  return ticks.length > 1 || smaller === undefined ? ticks : multiples(from, to, smaller, offset);
}

function multiples(from: number, to: number, step: number, offset: number): number[] {
  const first = Math.ceil((from + offset) / step) * step - offset;
  const ticks: number[] = [];
  for (let at = first; at <= to + step * 1e-6; at += step) ticks.push(at);
  return ticks;
}
