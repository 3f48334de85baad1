// One job of the list.

import type { JSX } from "preact";
import { isOver } from "../../api/live";
import type { JobSummary } from "../../api/types";
import { Copy } from "../../parts/copy";
import { Bar, progressShares } from "../../parts/bar";
import { Coded } from "../../parts/prose";
import { State } from "../../parts/state";
import { linkWith } from "../../shell/router";
import { count, rate, short } from "../../words/numbers";
import { paceOf, standingOf } from "../../words/pace";
import { age, clock, duration, moment } from "../../words/times";
import { titleOf } from "../../words/title";
import { written } from "./tags";
import { MadeBy } from "../job/maker";

interface Props {
  job: JobSummary;
  now: number;
  isChosen: boolean;
  toggle: () => void;
}

export function JobRow({ job, now, isChosen, toggle }: Props): JSX.Element {
  const pace = paceOf(job, now);
  const isOpen = !isOver(job);
  const name = titleOf(job);
  const { why } = job;
  return (
    <tr>
      <td class="tick">
        <input type="checkbox" aria-label={`Choose ${name}`} checked={isChosen} onChange={toggle} />
      </td>
      <th scope="row" class="name">
        <a class="row" href={`/jobs/${job.id}`}>
          {name}
        </a>
        <span class="sub">
          {job.type !== "parallel" && <span class="chip">{job.type}</span>}
          <MadeBy job={job} link={linkWith} />
          {written(job.tags).map((tag) => (
            <span key={tag} class="chip">
              {tag}
            </span>
          ))}
          <span class="id">
            <code>{job.id}</code>
            <Copy text={job.id} label={`Copy the id of ${name}`} />
          </span>
        </span>
      </th>
      <td class="standing">
        <State state={standingOf(job)} />
        {why && (
          <span class="sub message">
            <Coded text={why} />
          </span>
        )}
      </td>
      <td class="progress">
        <Progress job={job} />
      </td>
      <td class="number" data-label="items">
        {job.counts.items ? short(job.counts.items) : "–"}
        {job.counts.items_failed > 0 && <span class="sub bad">{count(job.counts.items_failed)} failed</span>}
      </td>
      <td class="number" data-label="pace">
        {rate(pace.itemsPerS)}
      </td>
      <td class="number">
        {pace.elapsedS ? duration(pace.elapsedS) : "–"}
        {pace.waitedS > 1 && <Waited job={job} seconds={pace.waitedS} isOpen={isOpen && !pace.elapsedS} />}
        {isOpen && pace.leftS !== undefined && (
          <>
            <span class="sub">{duration(pace.leftS)} left</span>
            {pace.ends && <span class="sub">ends about {clock(pace.ends)}</span>}
          </>
        )}
      </td>
      <td class="number" title={moment(job.submitted)}>
        {age(job.submitted, now)}
      </td>
    </tr>
  );
}

/** How long it waits for its first worker, or has waited: as on its page, one that never had one is told nothing. */
function Waited({ job, seconds, isOpen }: { job: JobSummary; seconds: number; isOpen: boolean }): JSX.Element | null {
  if (!isOpen && !job.pace?.ran_s) return null;
  return (
    <span class="sub">
      {isOpen ? "waits" : "waited"} {duration(seconds)}
    </span>
  );
}

function Progress({ job }: { job: JobSummary }): JSX.Element | null {
  const { done, failed, total, is_total_final } = job.counts;
  const isOpen = !is_total_final && !isOver(job);
  if (!total && isOver(job)) return null;
  // As on the job's page: mini-batches that are decided, steps that are done.
  const [reached, unit] = job.type === "pipeline" ? [done, " steps done"] : [done + failed, ""];
  return (
    <>
      <Bar label={`Progress of ${titleOf(job)}`} total={total} shares={progressShares(job.counts)} isOpen={isOpen} />
      <span class="sub">
        {count(reached)} / {isOpen ? `${count(total)} …` : count(total)}
        {unit}
        {failed > 0 && <span class="bad"> · {count(failed)} failed</span>}
      </span>
    </>
  );
}
