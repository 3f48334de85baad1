// The head of a job's page: its name, how it stands, in one sentence why, and what can be done with it.

import type { JSX } from "preact";
import { isReachable } from "../../api/http";
import { isOver, type LiveJob } from "../../api/live";
import type { Job } from "../../api/types";
import { Bar, itemShares, progressShares, type Share } from "../../parts/bar";
import { Copy } from "../../parts/copy";
import { Prose } from "../../parts/prose";
import { Mark, State } from "../../parts/state";
import { itemsFound, paceOf, standingOf, stepsIn } from "../../words/pace";
import { counted } from "../../words/numbers";
import { lostItems, sentenceOf } from "../../words/sentence";
import { kindOf } from "../../words/states";
import { clock, moment } from "../../words/times";
import { titleOf } from "../../words/title";
import { written } from "../jobs/tags";
import { Actions } from "./actions";
import { AfterFailures, Cause } from "./cause";
import { Figures } from "./figures";
import { Maker } from "./maker";
import { WhyNot } from "./sharing";

export function Header({ job, live, now }: { job: Job; live: LiveJob; now: number }): JSX.Element {
  const pace = paceOf(job, now);
  const isMixed = job.state === "completed" && (job.progress.failed > 0 || lostItems(job) > 0);
  return (
    <header class="job-head">
      <p class="crumbs">
        <a href="/jobs">Jobs</a>
        {job.parent && (
          <>
            {" / "}
            <a href={`/jobs/${job.parent.job}`}>pipeline</a> / step {job.parent.step}
          </>
        )}
      </p>
      <div class="heading">
        <h1>{titleOf(job)}</h1>
        <State state={standingOf(job)} />
        {!isReachable.value && job.pace && !isOver(job) && <span class="chip">as of {clock(job.pace.as_of)}</span>}
        {live.isLive.value && (
          <span class="chip live" title="Changes are shown as they happen">
            live
          </span>
        )}
        <Actions job={job} live={live} />
      </div>
      <p class="sub">
        <code>{job.id}</code> <Copy text={job.id} label="Copy the job's id" />
        <span>submitted {moment(job.submitted)}</span>
        <Maker id={job.id} />
        {written(job.tags).map((tag) => (
          <span key={tag} class="chip">
            {tag}
          </span>
        ))}
      </p>
      <div class={`sentence ${isMixed ? "mixed" : kindOf(standingOf(job))}`} aria-live="polite">
        <Mark state={standingOf(job)} />
        <div>
          <p>
            <Prose text={sentenceOf(job, pace)} />
          </p>
          <WhyNot job={job} />
          {job.progress.items_short > 0 && !job.failure && isOver(job) && (
            <p class="sub">
              {counted(job.progress.items_short, "item has", "items have")} no row of their own: run() returned fewer
              rows than items, as a job that sums up does. For these, nothing was raised.
            </p>
          )}
          {job.failure && <Cause job={job} failure={job.failure} />}
          <AfterFailures job={job} />
        </div>
      </div>
      {!isOver(job) && <Bar label="Progress" {...wholeOf(job)} />}
      <Figures job={job} pace={pace} />
    </header>
  );
}

/** What the bar of the whole job shows: its mini-batches, its items while only these are known, or a pipeline's steps. */
function wholeOf(job: Job): { total: number; shares: Share[]; isOpen: boolean } {
  if (job.type !== "pipeline") {
    const { progress } = job;
    if (progress.all_found && !progress.listing_done)
      return { total: itemsFound(job), shares: itemShares(progress), isOpen: false };
    return { total: progress.scheduled, shares: progressShares(progress), isOpen: !progress.listing_done };
  }
  return {
    total: job.steps.length,
    shares: [
      { kind: "done", value: stepsIn(job, "completed") },
      { kind: "failed", value: stepsIn(job, "failed", "canceled") },
      { kind: "running", value: stepsIn(job, "running") },
    ],
    isOpen: false,
  };
}
