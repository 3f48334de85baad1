// The phases of a job, each with a bar of its own: they overlap.

import type { JSX } from "preact";
import { isOver } from "../../../api/live";
import type { Job } from "../../../api/types";
import { Bar, progressShares, type Share } from "../../../parts/bar";
import { Card } from "../../../parts/card";
import { Mark } from "../../../parts/state";
import { bytes, count, counted } from "../../../words/numbers";
import { itemsFound } from "../../../words/pace";
import { secondsBetween, duration } from "../../../words/times";

interface Phase {
  name: string;
  state: string;
  total: number;
  shares: Share[];
  isOpen?: boolean;
  told: string;
}

export function Phases({ job, now }: { job: Job; now: number }): JSX.Element {
  return (
    <Card title="Phases">
      <ol class="phases">
        {phasesOf(job, now).map((phase) => (
          <li key={phase.name}>
            <span class="name">
              <Mark state={phase.state} />
              {phase.name}
            </span>
            <span class="sub">{phase.told}</span>
            <Bar label={phase.name} total={phase.total} shares={phase.shares} isOpen={phase.isOpen ?? false} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function phasesOf(job: Job, now: number): Phase[] {
  return [waiting(job, now), ...shuffling(job), scheduling(job), processing(job), concatenation(job)];
}

/** How a phase stands that has not come to its end when its job has ended. */
const left = (job: Job): string => (job.state === "canceled" ? "canceled" : "failed");

function waiting(job: Job, now: number): Phase {
  const waited = secondsBetween(job.submitted, job.started ?? job.ended ?? now);
  const state = job.started ? "done" : isOver(job) ? left(job) : "waiting";
  const done = job.started ? 1 : 0;
  return { name: "Waiting", state, total: 1, shares: [{ kind: "done", value: done }], isOpen: state === "waiting", told: duration(Math.max(0, waited)) };
}

function shuffling({ progress, ...job }: Job): Phase[] {
  const { bytes_shuffled: done, bytes_to_shuffle: total } = progress;
  if (!total) return [];
  const state = done >= total ? "done" : isOver(job) ? left(job as Job) : "running";
  return [{ name: "Grouping rows", state, total, shares: [{ kind: "done", value: done }], told: `${bytes(done)} of ${bytes(total)}` }];
}

function scheduling(job: Job): Phase {
  const { scheduled, items_scheduled, listing_done, all_found, chosen_size, chosen_why } = job.progress;
  const state = listing_done ? "done" : isOver(job) ? left(job) : job.started ? "running" : "waiting";
  const of = all_found && !listing_done ? ` of ${count(itemsFound(job))}` : "";
  const size = chosen_size ? `; the size is auto: ${counted(chosen_size, "item")}, because ${chosen_why}` : "";
  return {
    name: "Scheduling",
    state,
    total: 1,
    shares: [{ kind: "done", value: listing_done ? 1 : 0 }],
    isOpen: state === "running",
    told: scheduled ? `${counted(items_scheduled, "item")}${of} in ${counted(scheduled, "mini-batch", "mini-batches")}${listing_done ? "" : " so far"}${size}` : "",
  };
}

function processing(job: Job): Phase {
  const { scheduled, listing_done, done, failed, running } = job.progress;
  const isDone = listing_done && done + failed >= scheduled;
  const state = isDone ? (failed && !done ? "failed" : "done") : isOver(job) ? left(job) : done + failed + running ? "running" : "waiting";
  const bad = failed ? `, ${count(failed)} failed` : "";
  return {
    name: "Processing",
    state,
    total: scheduled,
    shares: progressShares(job.progress),
    told: scheduled ? `${count(done)} done${bad}${running ? `, ${count(running)} at work` : ""}` : "",
  };
}

function concatenation(job: Job): Phase {
  const { bytes_concatenated: done, bytes_to_concatenate: total } = job.progress;
  const isDone = job.state === "completed";
  const state = isDone ? "done" : isOver(job) ? (total ? left(job) : "skipped") : job.state === "finalizing" ? "running" : "waiting";
  const told = job.output ? `${bytes(job.output.bytes)}, ${job.output.order}` : total ? `${bytes(done)} of ${bytes(total)}` : "";
  return { name: "Concatenation", state, total: isDone ? 1 : total, shares: [{ kind: "done", value: isDone ? 1 : done }], told };
}
