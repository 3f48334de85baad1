// The phases of a job, each with a bar of its own: they overlap.

import type { JSX } from "preact";
import { isOver } from "../../../api/live";
import type { Job, Throughput } from "../../../api/types";
import { Bar, progressShares, type Share } from "../../../parts/bar";
import { Card } from "../../../parts/card";
import { Mark } from "../../../parts/state";
import { bytes, count, counted } from "../../../words/numbers";
import { itemsFound, paceOf, type Pace } from "../../../words/pace";
import { duration } from "../../../words/times";

interface Phase {
  name: string;
  state: string;
  total: number;
  shares: Share[];
  isOpen?: boolean;
  told: string;
}

/** When the first try began and the last one ended, in milliseconds since the epoch; undefined: none has. */
interface Tries {
  begin: number;
  end: number;
}

export function Phases({
  job,
  now,
  throughput,
}: {
  job: Job;
  now: number;
  throughput: Throughput | undefined;
}): JSX.Element {
  return (
    <Card title="Phases">
      <ol class="phases">
        {phasesOf(job, now, triesOf(throughput)).map((phase) => (
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

function phasesOf(job: Job, now: number, tries: Tries | undefined): Phase[] {
  const pace = paceOf(job, now);
  return [
    waiting(job, pace),
    ...shuffling(job),
    scheduling(job, tries),
    processing(job, tries, pace),
    concatenation(job, now, tries),
  ];
}

function triesOf(throughput: Throughput | undefined): Tries | undefined {
  const { start, first_try_s: first, last_try_s: last } = throughput ?? {};
  if (!start || first == null || last == null) return undefined;
  return { begin: Date.parse(start) + first * 1000, end: Date.parse(start) + last * 1000 };
}

/** What is told of a phase, with how long it took; clocks of nodes may be a little ahead of the server's. */
const toldIn = (told: string, milliseconds: number): string =>
  [told, duration(Math.max(0, milliseconds / 1000))].filter(Boolean).join(" · ");

/** How a phase stands that has not come to its end when its job has ended. */
const left = (job: Job): string => (job.state === "canceled" ? "canceled" : "failed");

/** From the submission, or the last resume or retry, until a worker has the first mini-batch. */
function waiting(job: Job, pace: Pace): Phase {
  const hasWorkers = job.progress.worked_from > 0 || job.failure?.code === "INIT_FAILED";
  const isDone = hasWorkers && job.state !== "queued";
  const state = isDone ? "done" : isOver(job) ? left(job) : "waiting";
  return {
    name: "Waiting",
    state,
    total: 1,
    shares: [{ kind: "done", value: isDone ? 1 : 0 }],
    isOpen: state === "waiting",
    // Of a job whose workers never got through init(), nobody knows when the first one was there.
    told: isDone && !job.progress.worked_from ? "" : duration(pace.waitedS),
  };
}

function shuffling({ progress, ...job }: Job): Phase[] {
  const { bytes_shuffled: done, bytes_to_shuffle: total } = progress;
  if (!total) return [];
  const state = done >= total ? "done" : isOver(job) ? left(job as Job) : "running";
  return [
    {
      name: "Grouping rows",
      state,
      total,
      shares: [{ kind: "done", value: done }],
      told: `${bytes(done)} of ${bytes(total)}`,
    },
  ];
}

function scheduling(job: Job, tries: Tries | undefined): Phase {
  const { scheduled, items_scheduled, listing_done, all_found, chosen_size, chosen_why } = job.progress;
  const state = listing_done ? "done" : isOver(job) ? left(job) : job.started ? "running" : "waiting";
  const of = all_found && !listing_done ? ` of ${count(itemsFound(job))}` : "";
  return {
    name: "Scheduling",
    state,
    total: 1,
    shares: [{ kind: "done", value: listing_done ? 1 : 0 }],
    isOpen: state === "running",
    told: [
      scheduled
        ? `${counted(items_scheduled, "item")}${of} in ${counted(scheduled, "mini-batch", "mini-batches")}${listing_done ? "" : " so far"}`
        : "",
      chosen_size ? `${counted(chosen_size, "item")} for each now (auto): ${chosen_why}` : "",
      job.started && tries
        ? `first try after ${duration(Math.max(0, (tries.begin - Date.parse(job.started)) / 1000))}`
        : "",
    ]
      .filter(Boolean)
      .join(" · "),
  };
}

function processing(job: Job, tries: Tries | undefined, pace: Pace): Phase {
  const { scheduled, listing_done, done, failed } = job.progress;
  const running = isOver(job) ? 0 : job.progress.running;
  const isDone = listing_done && done + failed >= scheduled;
  const state = isDone
    ? failed && !done
      ? "failed"
      : "done"
    : isOver(job)
      ? left(job)
      : done + failed + running
        ? "running"
        : "waiting";
  const bad = failed ? `, ${count(failed)} failed` : "";
  const told = scheduled ? `${count(done)} done${bad}${running ? `, ${count(running)} at work` : ""}` : "";
  return {
    name: "Processing",
    state,
    total: scheduled,
    shares: progressShares({ done, failed, running }),
    told:
      state === "running" ? toldIn(told, pace.elapsedS * 1000) : tries ? toldIn(told, tries.end - tries.begin) : told,
  };
}

function concatenation(job: Job, now: number, tries: Tries | undefined): Phase {
  const { bytes_concatenated: done, bytes_to_concatenate: total } = job.progress;
  const isDone = job.state === "completed";
  const state = isDone
    ? "done"
    : isOver(job)
      ? total
        ? left(job)
        : "skipped"
      : job.state === "finalizing"
        ? "running"
        : "waiting";
  const told = job.output
    ? `${bytes(job.output.bytes)}, ${job.output.order}`
    : total
      ? `${bytes(done)} of ${bytes(total)}`
      : "";
  const end = job.ended ? Date.parse(job.ended) : now;
  const isTimed = tries && (state === "done" || state === "running");
  return {
    name: "Concatenation",
    state,
    total: isDone ? 1 : total,
    shares: [{ kind: "done", value: isDone ? 1 : done }],
    told: isTimed ? toldIn(told, end - tries.end) : told,
  };
}
