// The part of a what-if in which something is gained.

import type { AdviceCurve } from "../../../api/types";

/** Less is noise. */
const LEAST_GAIN = 0.02;

/** The values up to the one after which no other is faster; the one that counts now is always among them. */
export function untilPlateau({ points, now }: AdviceCurve): AdviceCurve["points"] {
  const fastest = Math.min(...points.map(({ seconds }) => seconds));
  const enough = points.findIndex(({ seconds }) => seconds <= fastest * (1 + LEAST_GAIN));
  return points.filter(({ value }, index) => index <= enough || value === now);
}
