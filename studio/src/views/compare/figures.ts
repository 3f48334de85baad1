// The figures in which jobs are compared, in the order in which one asks for them.

import type { Figures } from "../../api/types";
import { count, percent, rate } from "../../words/numbers";
import { duration } from "../../words/times";

export interface Figure {
  name: keyof Figures;
  title: string;
  format: (value: number) => string;
  /** Undefined: neither more nor less is better. */
  isBetterLow?: boolean;
  /** Seconds: their differences are noise below a tenth of one. */
  isSeconds?: boolean;
}

export const FIGURES: Figure[] = [
  { name: "took_s", title: "Took", format: duration, isSeconds: true, isBetterLow: true },
  { name: "waited_s", title: "Waited for a leader", format: duration, isSeconds: true, isBetterLow: true },
  { name: "first_try_s", title: "Until the first try", format: duration, isSeconds: true, isBetterLow: true },
  { name: "items_per_s", title: "Items a second", format: rate, isBetterLow: false },
  { name: "mini_batches_per_s", title: "Mini-batches a second", format: rate, isBetterLow: false },
  { name: "busy_share", title: "Workers busy", format: percent, isBetterLow: false },
  { name: "nodes", title: "Nodes", format: count },
  { name: "workers", title: "Workers", format: count },
  { name: "mini_batches", title: "Mini-batches", format: count },
  { name: "failed_mini_batches", title: "Mini-batches that failed", format: count, isBetterLow: true },
  { name: "failed_tries", title: "Tries that failed", format: count, isBetterLow: true },
  { name: "items", title: "Items", format: count },
  { name: "rows", title: "Rows", format: count },
  { name: "median_run_s", title: "run(), median", format: duration, isSeconds: true, isBetterLow: true },
  { name: "p95_run_s", title: "run(), 95 of 100 within", format: duration, isSeconds: true, isBetterLow: true },
  { name: "max_run_s", title: "run(), longest", format: duration, isSeconds: true, isBetterLow: true },
  { name: "run_s", title: "run(), all together", format: duration, isSeconds: true },
  { name: "load_s", title: "Loading, all together", format: duration, isSeconds: true, isBetterLow: true },
  { name: "init_s", title: "init(), all together", format: duration, isSeconds: true, isBetterLow: true },
  { name: "overhead_s", title: "Overhead, all together", format: duration, isSeconds: true, isBetterLow: true },
  { name: "wasted_s", title: "In tries that failed", format: duration, isSeconds: true, isBetterLow: true },
];

/** Two runs of the same job differ by so much. */
const NOISE_SHARE = 0.05;
const NOISE_S = 0.1;

export interface Change {
  text: string;
  /** A class; better and worse are said in words, too. */
  kind: "good" | "bad" | "";
}

/** How a figure differs from that of the first job; null: it doesn't, as far as that can be told. */
export function changeOf(
  { isBetterLow, isSeconds, format }: Figure,
  before: number | null,
  after: number | null,
  areComparable: boolean,
): Change | null {
  if (before === null || after === null || before === after) return null;
  const share = after / before - 1;
  if (Math.abs(share) < NOISE_SHARE || (isSeconds && Math.abs(after - before) < NOISE_S)) return null;
  const factor = Number.isFinite(share) ? `${Math.round(share + 1)} times` : format(after);
  const size = Math.abs(share) < 10 ? `${Math.round(Math.abs(share) * 100)} %` : factor;
  const text = `${share > 0 ? "+" : "−"}${size}`;
  if (!areComparable || isBetterLow === undefined) return { text, kind: "" };
  return share < 0 === isBetterLow ? { text: `${text} better`, kind: "good" } : { text: `${text} worse`, kind: "bad" };
}
