// What can be done with a job. What changes something asks first; each says how to do the same without the page.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { send } from "../../api/http";
import { isOver, type LiveJob } from "../../api/live";
import { filePath, jobPath } from "../../api/paths";
import { mayChange } from "../../api/session";
import type { Job } from "../../api/types";
import { Command } from "../../parts/command";
import { Copy } from "../../parts/copy";
import { Question } from "../../parts/question";
import { Icon, type IconName } from "../../parts/icon";
import { hasNotices, wantNotice, wantsNotice } from "../../shell/tab_title";
import { count, counted } from "../../words/numbers";
import { lostItems } from "../../words/sentence";
import { titleOf } from "../../words/title";
import { Priority } from "./sharing";

interface Action {
  verb: "cancel" | "pause" | "retry" | "resume";
  title: string;
  icon: IconName;
  question: string;
  isGrave?: boolean;
  /** Why it will not help. */
  warning?: string;
}

const FAILS_AGAIN =
  "It has failed before the first mini-batch: with the same code and settings, that must happen again. Mend what the failure names, and run it again with changes.";
/** What has nothing to do with single mini-batches, and is the same the next time. */
const THE_SAME_AGAIN = ["INIT_FAILED", "INVALID_INPUT"];

/** What running the rest doesn't undo: the server refuses to resume such a job. */
const FOR_GOOD = ["THRESHOLD_CROSSED", "COMMAND_FAILED", "NO_ROWS", "EMPTY_INPUT"];

const failsAgain = ({ failure, progress }: Job): boolean =>
  failure !== null && !progress.done && THE_SAME_AGAIN.includes(failure.code);

function resumed({ type, progress }: Job): string {
  const { scheduled, done, failed, listing_done } = progress;
  if (type === "pipeline" || !listing_done) return "What has no result yet is run.";
  return `${counted(scheduled - done - failed, "mini-batch", "mini-batches")} without a result ${scheduled - done - failed === 1 ? "is" : "are"} run${failed ? `; the ${count(failed)} that failed are not` : ""}.`;
}

export function Actions({ job, live }: { job: Job; live: LiveJob }): JSX.Element {
  const [asked, ask] = useState<Action | undefined>(undefined);
  const output = outputOf(job);
  const isMine = mayChange(job.owner);
  return (
    <div class="actions">
      {output && (
        <a class="button" href={output} download>
          <Icon name="down" />
          Download
        </a>
      )}
      {job.type === "pipeline" && isOver(job) && (
        <a class="button" href={`/jobs/${job.id}/outputs`}>
          <Icon name="down" />
          Download …
        </a>
      )}
      {(isMine ? actionsOf(job) : []).map((action) => (
        <button key={action.verb} type="button" class={action.isGrave ? "grave" : ""} onClick={() => ask(action)}>
          <Icon name={action.icon} />
          {action.title}
        </button>
      ))}
      {!isOver(job) && isMine && <Priority job={job} live={live} />}
      {isHeld(job) && <span class="sub">paused by an admin</span>}
      {!isMine && <span class="sub">changed by {job.owner || "admins"} alone</span>}
      {!isOver(job) && hasNotices() && (
        <button type="button" class="quiet" aria-pressed={wantsNotice.value} onClick={() => void wantNotice()}>
          Tell me at the end
        </button>
      )}
      <a class="button" href={`/new?from=${job.id}`}>
        <Icon name="again" />
        Run again …
      </a>
      {!job.parent && (
        <a class="button" href={`/schedules?of=${job.id}`}>
          Schedule …
        </a>
      )}
      <Copy text={`parallelrun job show ${job.id}`} label="Copy the command that shows this job">
        CLI
      </Copy>
      <Copy text={curlOf(job)} label="Copy the request for this job, for curl">
        curl
      </Copy>
      {asked && <Confirm key={asked.verb} job={job} action={asked} live={live} onClose={() => ask(undefined)} />}
    </div>
  );
}

const GO_ON: Action = {
  verb: "resume",
  title: "Go on",
  icon: "play",
  question: "Nodes begin mini-batches again, each as far as it has slots for this job.",
};
const PAUSE: Action = {
  verb: "pause",
  title: "Pause",
  icon: "pause",
  question: "Nodes begin nothing more. What runs ends and counts, no timeout runs, and no row is lost.",
};

/** Whether an admin has paused it, and whoever looks at it is none: they can't let it go on. */
const isHeld = (job: Job): boolean => job.paused && job.waiting?.needs_admin === true;

function actionsOf(job: Job): Action[] {
  const { failed, done } = job.progress;
  const isPipeline = job.type === "pipeline";
  if (!isOver(job))
    return [
      ...(isHeld(job) ? [] : [job.paused ? GO_ON : PAUSE]),
      {
        verb: "cancel",
        title: "Cancel",
        icon: "stop",
        isGrave: true,
        question: isPipeline
          ? "The steps that run are stopped, too. What has completed is kept, and a resume goes on from there."
          : `What is running is stopped. ${counted(done, "mini-batch is", "mini-batches are")} done; they are kept, and a resume goes on from there.`,
      },
    ];
  const actions: Action[] = [];
  const lost = isPipeline ? 0 : lostItems(job);
  if (failed || lost || (isPipeline && job.state !== "completed"))
    actions.push({
      verb: "retry",
      title: "Retry failed",
      icon: "again",
      question: isPipeline
        ? "What has failed is run again, and what follows it. What has completed is kept."
        : `${failed ? counted(failed, "failed mini-batch is", "failed mini-batches are") : counted(lost, "failed item is", "failed items are")} run again, into the same output. What is done is kept. The code stays as it was.`,
    });
  if (job.state !== "completed" && !FOR_GOOD.includes(job.failure?.code ?? ""))
    actions.push({
      verb: "resume",
      title: "Resume",
      icon: "play",
      question: `${resumed(job)} What is done is kept. The code stays as it was.`,
      ...(failsAgain(job) ? { warning: FAILS_AGAIN } : {}),
    });
  return actions;
}

interface ConfirmProps {
  job: Job;
  action: Action;
  live: LiveJob;
  onClose: () => void;
}

function Confirm({ job, action, live, onClose }: ConfirmProps): JSX.Element {
  const act = (): Promise<void> => send("POST", `${jobPath(job.id)}:${action.verb}`).then(live.restart);
  return (
    <Question
      title={`${action.title} ${titleOf(job)}?`}
      button={action.title}
      isGrave={action.isGrave}
      act={act}
      onClose={onClose}
    >
      <p>{action.question}</p>
      {action.warning && (
        <p class="notice failed">
          {action.warning} <a href={`/new?from=${job.id}&resume_from=1`}>Run again, with changes</a>
        </p>
      )}
      <Command text={`parallelrun job ${action.verb} ${job.id}`} />
    </Question>
  );
}

/** The one file with all rows, if there is one here. */
function outputOf(job: Job): string | undefined {
  const name = job.output?.path.split("/").at(-1);
  return name && !job.output?.path.includes("://") ? filePath(job.id, "outputs", name) : undefined;
}

const curlOf = (job: Job): string => `curl -sS -H "Authorization: Bearer $TOKEN" ${location.origin}${jobPath(job.id)}`;
