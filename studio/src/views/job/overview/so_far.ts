// How many items are done at each time, and when all of them are expected to be.

import type { Throughput } from "../../../api/types";

interface SoFar {
  /** Seconds since the epoch. */
  times: number[];
  done: (number | null)[];
  /** From the last time until the end, if that is known. */
  expected: (number | null)[];
}

export function soFar(
  begin: number,
  { bucket_s, items }: Pick<Throughput, "bucket_s" | "items">,
  total: number,
  ends: number | undefined,
): SoFar {
  let sum = 0;
  const sums = [0, ...items.map((value) => (sum += value))];
  const times = sums.map((_, index) => begin + index * bucket_s);
  if (ends === undefined) return { times, done: sums, expected: [] };
  const nothing = new Array<null>(items.length).fill(null);
  return {
    times: [...times, Math.max(ends, times.at(-1)!)],
    done: [...sums, null],
    expected: [...nothing, sum, total],
  };
}
