// How fast a job is, and how long it will take: from what it has done so far.

import type { Job } from "../api/types";
import { secondsBetween } from "./times";

export interface Pace {
  elapsedS: number;
  /** Items a second since it began, without those that failed; NaN: not known. */
  itemsPerS: number;
  /** Seconds until all mini-batches are decided, at that pace; undefined: nothing can be said yet. */
  leftS: number | undefined;
}

export function paceOf(job: Job, now: number): Pace {
  if (!job.started) return { elapsedS: 0, itemsPerS: NaN, leftS: undefined };
  const elapsedS = Math.max(0, secondsBetween(job.started, job.ended ?? now));
  const { items_done, items_failed, done, failed, scheduled, resumed, listing_done, all_found } = job.progress;
  const decided = done + failed - resumed;
  const isOpen = job.state === "processing" && decided > 0 && elapsedS > 1;
  const items = items_done + items_failed;
  // While a job still chooses the size of its mini-batches, only the number of its items is known.
  const left = listing_done
    ? (scheduled - done - failed) / decided
    : all_found && !resumed
      ? (itemsFound(job) - items) / items
      : NaN;
  return {
    elapsedS,
    itemsPerS: elapsedS > 0 ? items_done / elapsedS : NaN,
    leftS: isOpen && Number.isFinite(left) ? left * elapsedS : undefined,
  };
}

/** How many items are known: in mini-batches, or still to be put into some. */
export const itemsFound = ({ progress }: Job): number => progress.items_scheduled + progress.items_ahead;

/** The share of a job's mini-batches, or of a pipeline's steps, that are decided. */
export function shareOf(job: Job): number {
  if (job.state === "completed") return 1;
  if (job.steps.length)
    return job.steps.filter((step) => !["waiting", "running"].includes(step.state)).length / job.steps.length;
  const { done, failed, scheduled } = job.progress;
  return scheduled ? (done + failed) / scheduled : 0;
}
