// The figures in which jobs are compared, in the order in which one asks for them.

import type { Figures } from "../../api/types";
import { count, percent, rate } from "../../words/numbers";
import { duration } from "../../words/times";

interface Figure {
  name: keyof Figures;
  title: string;
  format: (value: number) => string;
  /** Undefined: neither more nor less is better. */
  isBetterLow?: boolean;
}

export const FIGURES: Figure[] = [
  { name: "took_s", title: "Took", format: duration, isBetterLow: true },
  { name: "waited_s", title: "Waited for a leader", format: duration, isBetterLow: true },
  { name: "first_try_s", title: "Until the first try", format: duration, isBetterLow: true },
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
  { name: "median_run_s", title: "run(), median", format: duration, isBetterLow: true },
  { name: "p95_run_s", title: "run(), 95 of 100 within", format: duration, isBetterLow: true },
  { name: "max_run_s", title: "run(), longest", format: duration, isBetterLow: true },
  { name: "run_s", title: "run(), all together", format: duration },
  { name: "load_s", title: "Loading, all together", format: duration, isBetterLow: true },
  { name: "init_s", title: "init(), all together", format: duration, isBetterLow: true },
  { name: "overhead_s", title: "Overhead, all together", format: duration, isBetterLow: true },
  { name: "wasted_s", title: "In tries that failed", format: duration, isBetterLow: true },
];
