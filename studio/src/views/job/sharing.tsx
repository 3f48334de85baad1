// Where a job stands among others: why it doesn't run now, and the priority that it has.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { send, type Problem } from "../../api/http";
import { isOver, type LiveJob } from "../../api/live";
import { jobPath } from "../../api/paths";
import { isAdmin } from "../../api/session";
import type { Job } from "../../api/types";
import { lazy } from "../../parts/lazy";
import { Prose } from "../../parts/prose";
import { standingOf } from "../../words/pace";

const Explained = lazy(async () => (await import("./more_tabs")).Explained);
const PRIORITIES: Job["priority"][] = ["low", "normal", "high", "urgent"];
const WAITING = ["queued", "waiting_for_workers"];

/** Why a job that waits doesn't run now, with the conditions that are not met. */
export function WhyNot({ job }: { job: Job }): JSX.Element | null {
  return !isOver(job) && (job.paused || WAITING.includes(standingOf(job))) ? <Explained job={job} /> : null;
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
