// One job of the list.

import type { JSX } from "preact";
import { isOver } from "../../api/live";
import type { Job } from "../../api/types";
import { Bar, progressShares } from "../../parts/bar";
import { State } from "../../parts/state";
import { count, rate, short } from "../../words/numbers";
import { paceOf } from "../../words/pace";
import { age, duration, moment } from "../../words/times";
import { titleOf } from "../../words/title";
import { tagsOf } from "./matching";

interface Props {
  job: Job;
  now: number;
  isChosen: boolean;
  toggle: () => void;
}

export function JobRow({ job, now, isChosen, toggle }: Props): JSX.Element {
  const pace = paceOf(job, now);
  const isOpen = !isOver(job);
  const name = titleOf(job);
  return (
    <tr>
      <td class="tick">
        <input type="checkbox" aria-label={`Compare ${name}`} checked={isChosen} onChange={toggle} />
      </td>
      <th scope="row" class="name">
        <a class="row" href={`/jobs/${job.id}`}>
          {name}
        </a>
        <span class="sub">
          {job.type !== "parallel" && <span class="chip">{job.type}</span>}
          {tagsOf(job).map((tag) => (
            <span key={tag} class="chip">
              {tag}
            </span>
          ))}
          <code>{job.id}</code>
        </span>
      </th>
      <td>
        <State state={job.state} />
      </td>
      <td class="progress">{job.type === "pipeline" ? null : <Progress job={job} />}</td>
      <td class="number" data-label="items">
        {job.progress.items_done ? short(job.progress.items_done) : "–"}
      </td>
      <td class="number" data-label="pace">
        {rate(pace.itemsPerS)}
      </td>
      <td class="number">
        {job.started ? duration(pace.elapsedS) : "–"}
        {isOpen && pace.leftS !== undefined && <span class="sub">{duration(pace.leftS)} left</span>}
      </td>
      <td class="number" title={moment(job.submitted)}>
        {age(job.submitted, now)}
      </td>
    </tr>
  );
}

function Progress({ job }: { job: Job }): JSX.Element {
  const { done, failed, scheduled, listing_done } = job.progress;
  const isOpen = !listing_done && !isOver(job);
  return (
    <>
      <Bar
        label={`Progress of ${titleOf(job)}`}
        total={scheduled}
        shares={progressShares(job.progress)}
        isOpen={isOpen}
      />
      <span class="sub">
        {count(done + failed)} / {isOpen ? `${count(scheduled)} …` : count(scheduled)}
        {failed > 0 && <span class="bad"> · {count(failed)} failed</span>}
      </span>
    </>
  );
}
