// A job in one sentence: what it does, or why it is as it is.

import type { Job } from "../api/types";
import { count, counted } from "./numbers";
import type { Pace } from "./pace";
import { duration } from "./times";

export function sentenceOf(job: Job, pace: Pace): string {
  switch (job.state) {
    case "queued":
      return "Waits for a leader: it begins as soon as a master is free.";
    case "processing":
      return job.type === "pipeline" ? stepsOf(job) : `${processing(job)}${left(pace)}`;
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

function processing(job: Job): string {
  const { done, failed, scheduled, listing_done, preparing, bytes_shuffled, bytes_to_shuffle } = job.progress;
  if (bytes_shuffled < bytes_to_shuffle) return "The rows of the table are being grouped by their keys";
  if (preparing && !done && !failed) return `${counted(preparing, "node")} build the Python environment of the workers`;
  if (!scheduled) return "The input is being listed";
  const total = listing_done ? count(scheduled) : `${count(scheduled)} found so far`;
  const bad = failed ? `; ${counted(failed, "has", "have")} failed` : "";
  return `${count(done + failed)} of ${total} mini-batches are decided${bad}`;
}

const left = ({ leftS }: Pace): string => (leftS === undefined ? "." : `. About ${duration(Math.max(1, leftS))} left.`);

function stepsOf(job: Job): string {
  const names = job.steps.filter((step) => step.state === "running").map((step) => step.name);
  const done = job.steps.filter((step) => step.state === "completed").length;
  const now = names.length ? ` Now: ${names.slice(0, 3).join(", ")}${names.length > 3 ? " …" : ""}.` : "";
  return `${done} of ${counted(job.steps.length, "step")} have completed.${now}`;
}

function completed(job: Job, pace: Pace): string {
  const { items_done, items_failed, failed, rows } = job.progress;
  const took = ` in ${duration(pace.elapsedS)}`;
  if (job.type === "pipeline") return `All ${counted(job.steps.length, "step")} have ended${took}.`;
  if (job.type === "command") return `The command has ended${took}.`;
  const bad =
    items_failed || failed
      ? `, but ${counted(items_failed, "item")} in ${counted(failed, "mini-batch", "mini-batches")} failed`
      : "";
  return `${counted(items_done, "item")} gave ${counted(rows, "row")}${took}${bad}.`;
}
