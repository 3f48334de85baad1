// A job in one sentence: what it does, or why it is as it is.

import type { Job } from "../api/types";
import { count, counted } from "./numbers";
import { standingOf, stepsIn, type Pace } from "./pace";
import { clock, duration } from "./times";

export function sentenceOf(job: Job, pace: Pace): string {
  switch (job.state) {
    case "queued":
      return "Waits for a leader: it begins as soon as a master is free.";
    case "processing":
      return job.type === "pipeline" ? stepsOf(job) : `${processing(job, pace)}${left(pace)}`;
    case "finalizing":
      return "All mini-batches are decided. The workers end, and the output is put together.";
    case "completed":
      return completed(job, pace);
    case "failed":
      return job.failure?.summary || "It has failed.";
    case "canceled":
      return `Canceled after ${duration(pace.elapsedS)}${job.progress.done ? `, with ${counted(job.progress.done, "mini-batch", "mini-batches")} done` : ""}. To go on, resume it.`;
  }
}

function processing(job: Job, pace: Pace): string {
  const { done, failed, scheduled, listing_done, preparing, bytes_shuffled, bytes_to_shuffle } = job.progress;
  if (bytes_shuffled < bytes_to_shuffle) return "The rows of the table are being grouped by their keys";
  if (preparing && !done && !failed) return `${counted(preparing, "node")} build the Python environment of the workers`;
  if (!scheduled) return "The input is being listed";
  if (job.paused)
    return `It is paused, with ${counted(done + failed, "mini-batch", "mini-batches")} of ${count(scheduled)} decided`;
  const standing = standingOf(job);
  if (standing === "waiting_for_workers")
    return `Waits for workers ${pace.elapsedS ? "again" : `for ${duration(pace.waitedS)}`}${done + failed ? `, with ${counted(done + failed, "mini-batch", "mini-batches")} of ${count(scheduled)} decided` : ""}`;
  if (standing === "starting") return "Its workers start: init() runs, and no mini-batch yet";
  const total = listing_done ? count(scheduled) : `${count(scheduled)} found so far`;
  const bad = failed ? `; ${counted(failed, "has", "have")} failed` : "";
  return `${count(done + failed)} of ${total} mini-batches are decided${bad}${waits(job)}${cost(job)}`;
}

/** The limits for which mini-batches have waited a part of their time that is worth telling, as `job show` has it. */
function waits({ progress: { waits_s, waits_of_s } }: Job): string {
  const shares = Object.entries(waits_s)
    .map(([name, seconds]) => [name, (100 * seconds) / waits_of_s] as const)
    .filter(([, share]) => share >= 1)
    .sort((one, other) => other[1] - one[1])
    .map(([name, share]) => `${name} ${Math.round(share)} %`);
  return shares.length ? `; waits for ${shares.join(", ")}: more nodes won't help` : "";
}

/** What the job has spent, and its budget, as `job show` has it. */
function cost({ progress: { spent_usd, budget_usd } }: Job): string {
  if (!spent_usd && !budget_usd) return "";
  return `; ${dollars(spent_usd)}${budget_usd ? ` of a budget of ${dollars(budget_usd)}` : ""} spent`;
}

/** Cents, and of less than a dollar four digits that say something, as in the words of the server. */
const dollars = (usd: number): string => {
  const decimals = usd > 0 && usd < 1 ? 3 - Math.floor(Math.log10(usd)) : 2;
  return `$${usd.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: decimals })}`;
};

const left = ({ leftS, ends }: Pace): string =>
  leftS === undefined || !ends ? "." : `. About ${duration(leftS)} left: it ends about ${clock(ends)}.`;

function stepsOf(job: Job): string {
  const names = job.steps.filter((step) => step.state === "running").map((step) => step.name);
  const done = stepsIn(job, "completed");
  const now = names.length ? ` Now: ${names.slice(0, 3).join(", ")}${names.length > 3 ? " …" : ""}.` : "";
  return `${done} of ${counted(job.steps.length, "step")} have completed.${now}`;
}

function completed(job: Job, pace: Pace): string {
  const took = ` in ${duration(pace.elapsedS)}`;
  if (job.type === "pipeline") return `All ${counted(job.steps.length, "step")} have ended${took}.`;
  if (job.type === "command") return `The command has ended${took}.`;
  const { items_done, items_short, rows, failed } = job.progress;
  // What has gone wrong, or is less than one may expect, the server says for all in the same words.
  if (job.summary && (failed || lostItems(job) || items_short))
    return `${capital(job.summary)}. It took ${duration(pace.elapsedS)}.`;
  return `${counted(items_done, "item")} gave ${counted(rows, "row")}${took}.`;
}

/** Items for which something was raised, timed out or died. Without a row alone, they have not failed. */
export const lostItems = ({ progress }: Pick<Job, "progress">): number => progress.items_failed - progress.items_short;

/** A sentence with a capital first, unless it begins with a name of code, as in `init()`. */
export const capital = (text: string): string =>
  text.replace(/^[a-z]+(?=[\s,;:]|$)/, (word) => word[0]!.toUpperCase() + word.slice(1));

/** A sentence with an end. */
export const ended = (text: string): string => (/[.!?:…]$/.test(text) ? text : `${text}.`);
