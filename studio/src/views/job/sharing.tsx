// Where a job stands among others: why it doesn't run now, and the priority that it has.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useEvery } from "../../api/every";
import { getJson, send, type Problem } from "../../api/http";
import { isOver, type LiveJob } from "../../api/live";
import { useLoaded } from "../../api/loaded";
import { jobPath } from "../../api/paths";
import { isAdmin } from "../../api/session";
import type { Explanation, Job } from "../../api/types";
import { Prose } from "../../parts/prose";
import { ended } from "../../words/sentence";
import { standingOf } from "../../words/pace";
import { duration } from "../../words/times";
import { Holders } from "./holders";

const EVERY_MS = 5000;
const PRIORITIES: Job["priority"][] = ["low", "normal", "high", "urgent"];
const WAITING = ["queued", "waiting_for_workers"];

/** Why a job that waits doesn't run now, with the conditions that are not met. */
export function WhyNot({ job }: { job: Job }): JSX.Element | null {
  return !isOver(job) && (job.paused || WAITING.includes(standingOf(job))) ? <Explained job={job} /> : null;
}

function Explained({ job }: { job: Job }): JSX.Element | null {
  const { value } = useLoaded(
    `${job.id} ${job.paused}`,
    (signal) => getJson<Explanation>(`${jobPath(job.id)}/explanation`, signal),
    useEvery(EVERY_MS),
  );
  if (!value || value.runs) return null;
  const [first, ...others] = value.conditions.filter(({ state }) => state !== "met");
  // Who has the workers is told by name; anything else that is missing, in the server's words.
  const isBehind = first?.name === "slots";
  return (
    <div class="why">
      {isBehind ? (
        <Holders job={job} />
      ) : (
        <p>
          <Prose text={`Why: ${value.answer}`} />
        </p>
      )}
      {isBehind && first.left_s !== null && <p>It gets a worker in about {duration(first.left_s)}.</p>}
      {value.advice && (
        <p>
          <b>What to do:</b> <Prose text={ended(value.advice)} />
        </p>
      )}
      {others.length > 0 && (
        <ul>
          {others.map(({ name, text, left_s }) => (
            <li key={name}>
              <Prose text={text} />
              {left_s !== null && `, about ${duration(left_s)}`}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

export function Priority({ job, live }: { job: Job; live: LiveJob }): JSX.Element {
  const [problem, tell] = useState<Problem | undefined>(undefined);
  const change = async (priority: string): Promise<void> => {
    tell(undefined);
    try {
      await send("POST", `${jobPath(job.id)}:prioritize`, { priority });
    } catch (error) {
      tell(error as Problem);
    }
    live.restart();
  };
  return (
    <label class="priority">
      Priority{" "}
      <select value={job.priority} onChange={({ currentTarget }) => void change(currentTarget.value)}>
        {PRIORITIES.filter((each) => each !== "urgent" || isAdmin() || job.priority === each).map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      {problem && (
        <span class="trouble" role="alert">
          <Prose text={problem.message} />
        </span>
      )}
    </label>
  );
}
