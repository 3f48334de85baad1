// The part of a what-if in which something is gained.

import type { AdviceCurve } from "../../../api/types";

/** Less is noise, as a share of the time. */
const LEAST_GAIN = 0.02;
/** For fewer seconds, nobody starts a node or submits a job anew. */
export const LEAST_GAIN_S = 10;

/** The values up to the one after which no other is faster; the one that counts now is always among them.
 *
 * left: the seconds that are left of a job that runs, as it is now; undecided: its mini-batches that are left, more
 * workers than which have nothing to do.
 */
export function untilPlateau(
  { points, now, seconds, setting }: AdviceCurve,
  left = seconds,
  undecided = Infinity,
): AdviceCurve["points"] {
  const factor = seconds > 0 ? left / seconds : 1;
  const took = points.map((each) => each.seconds * factor);
  const goal = Math.min(...took);
  const isEnough = (value: number, at: number): boolean =>
    took[at]! - goal <= Math.max(goal * LEAST_GAIN, LEAST_GAIN_S) ||
    (setting !== "mini_batch_size" && value >= undecided);
  const enough = points.findIndex(({ value }, at) => isEnough(value, at));
  return points.filter(({ value }, index) => index <= enough || value === now);
}
