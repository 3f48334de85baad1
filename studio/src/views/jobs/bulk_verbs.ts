// What can be done with several jobs at once, and for each of them what that will do, or why it can't be done.

import { isOver } from "../../api/live";
import { mayChange } from "../../api/session";
import type { JobSummary } from "../../api/types";
import { counted } from "../../words/numbers";
import { standingOf } from "../../words/pace";
import { worded } from "../../words/states";
import { written } from "./tags";

export type Verb = "cancel" | "retry" | "tag" | "archive" | "delete";

interface BulkVerb {
  title: string;
  question: string;
  isGrave?: boolean;
  /** Why it can't be done to a job; empty: as far as the page knows, it can. */
  obstacle: (job: JobSummary) => string;
  /** What becomes of a job. */
  effect: (job: JobSummary) => string;
}

const ended = ({ state }: JobSummary): string =>
  state === "canceled" ? "is canceled already" : `has ${state} already`;
const ofPipeline = ({ parent }: JobSummary): string => (parent ? "is a step of a pipeline: choose the pipeline" : "");
const undecided = ({ counts: { total, done, failed } }: JobSummary): number => Math.max(0, total - done - failed);
const unitOf = ({ type }: JobSummary): [string, string] =>
  type === "pipeline" ? ["step", "steps"] : ["mini-batch", "mini-batches"];

export const VERBS: Record<Verb, BulkVerb> = {
  cancel: {
    title: "Cancel",
    isGrave: true,
    question: "What is running is stopped. What is done is kept; a resume goes on from there.",
    obstacle: (job) =>
      isOver(job) ? ended(job) : job.state === "finalizing" ? "puts its output together: nothing is left to stop" : "",
    effect: (job) => {
      const { done, running } = job.counts;
      const [stopped, kept] = [counted(running, ...unitOf(job)), counted(done, ...unitOf(job))];
      return [
        worded(standingOf(job)),
        running && `${stopped} at work ${running === 1 ? "is" : "are"} stopped`,
        done && `${kept} done ${done === 1 ? "is" : "are"} kept`,
      ]
        .filter(Boolean)
        .join(", ");
    },
  },
  retry: {
    title: "Retry failed",
    question: "What has failed is run again, with the code as it was. What is done is kept.",
    obstacle: (job) => {
      if (!isOver(job)) return "has not ended";
      const { failed, items_failed } = job.counts;
      return job.state === "completed" && !failed && !items_failed ? "has completed, and nothing has failed in it" : "";
    },
    effect: (job) => {
      const { failed, items_failed } = job.counts;
      const rest = job.state === "completed" ? 0 : undecided(job);
      const again = failed ? counted(failed, ...unitOf(job)) : items_failed ? counted(items_failed, "item") : "";
      const left = rest ? `${counted(rest, ...unitOf(job))} without a result` : "";
      return `runs ${[again && `${again} that failed`, left].filter(Boolean).join(" and ") || "what has no result yet"}`;
    },
  },
  tag: {
    title: "Tag",
    question: "Tags are set, and with a minus removed. Other tags stay.",
    obstacle: () => "",
    effect: ({ tags }) => (Object.keys(tags).length ? `has ${written(tags).join(", ")}` : "has no tag"),
  },
  archive: {
    title: "Archive",
    question: "They are hidden from lists. Nothing of them is removed; they can be restored.",
    obstacle: (job) => ofPipeline(job) || (job.archived ? "is archived already" : ""),
    effect: (job) => (isOver(job) ? job.state : "goes on, hidden"),
  },
  delete: {
    title: "Delete",
    isGrave: true,
    question:
      "Their outputs, results and reports are removed for good. One that something else refers to stays, and says so.",
    obstacle: (job) => ofPipeline(job) || (isOver(job) ? "" : "has not ended: cancel it first"),
    effect: ({ state, counts: { rows } }) => `${state}${rows ? `, with ${counted(rows, "row")}` : ""}`,
  },
};

/** Why a job can't be changed so by whoever is signed in; empty: it can, as far as the page knows. */
export const obstacleOf = (verb: Verb, job: JobSummary): string =>
  mayChange(job.owner) ? VERBS[verb].obstacle(job) : `is changed by ${job.owner || "admins"} alone`;
