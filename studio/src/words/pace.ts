// How fast a job is, and how long it will take: as the server says, which has it from the job's leader.

import type { Job } from "../api/types";
import { secondsBetween } from "./times";

type Timed = Pick<Job, "pace" | "started" | "ended">;

export interface Pace {
  /** Seconds that it has worked since it was submitted, or resumed or retried last; of one that has ended, all it took. */
  elapsedS: number;
  /** Seconds that it has waited for its first worker since then. */
  waitedS: number;
  /** Items a second in the last minutes; NaN: not known. */
  itemsPerS: number;
  /** Seconds until all is decided, at that pace; undefined: nothing can be said yet. */
  leftS: number | undefined;
  /** When it then ends. */
  ends: string | undefined;
}

export function paceOf(job: Timed, now: number): Pace {
  const { pace, started, ended } = job;
  const took = started ? Math.max(0, secondsBetween(started, ended ?? now)) : 0;
  if (!pace) return { elapsedS: took, waitedS: 0, itemsPerS: NaN, leftS: undefined, ends: undefined };
  const since = ended ? 0 : Math.max(0, secondsBetween(pace.as_of, now));
  const isAtWork = pace.ran_s > 0 || pace.standing === "running" || pace.standing === "finalizing";
  return {
    elapsedS: ended ? took : isAtWork ? pace.ran_s + since : 0,
    waitedS: pace.waited_s + (isAtWork || ended ? 0 : since),
    itemsPerS: pace.items_per_s ?? NaN,
    leftS: pace.left_s === null ? undefined : Math.max(1, pace.left_s - since),
    ends: pace.ends ?? undefined,
  };
}

/** How many items are known: in mini-batches, or still to be put into some. */
export const itemsFound = ({ progress }: Job): number => progress.items_scheduled + progress.items_ahead;

/** How many items are decided: with a row, failed, or only without a row. As `items_decided` of the server. */
export const itemsDecided = ({ progress }: Job): number => progress.items_done + progress.items_failed;

const TOLD: string[] = ["waiting_for_workers", "starting", "paused"];

/** What a job is called in a list and on its page: its state, with waiting and working told apart. */
export function standingOf(job: Pick<Job, "state" | "pace">): string {
  const standing = job.pace?.standing;
  return standing && TOLD.includes(standing) ? standing : job.state;
}

/** How many steps of a pipeline are in these states. */
export const stepsIn = (job: Job, ...states: string[]): number =>
  job.steps.filter(({ state }) => states.includes(state)).length;

/** The share of a job's mini-batches, or of a pipeline's steps, that are decided. */
export function shareOf(job: Job): number {
  if (job.type === "pipeline") return job.steps.length ? stepsIn(job, "completed") / job.steps.length : 0;
  const { done, failed, scheduled } = job.progress;
  return job.state === "completed" ? 1 : scheduled ? (done + failed) / scheduled : 0;
}
