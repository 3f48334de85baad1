// What has happened to a job: its states, its first errors of each kind, the steps of a pipeline; from its beginning, as
// far as the server remembers it, and on from there.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { isOver, type LiveEvent } from "../../api/live";
import type { Job } from "../../api/types";
import { Card } from "../../parts/card";
import { Copy } from "../../parts/copy";
import { Empty } from "../../parts/notice";
import { Mark } from "../../parts/state";
import { causeOf } from "../../words/errors";
import { counted } from "../../words/numbers";
import { moment } from "../../words/times";
import { capital } from "../../words/sentence";
import { worded } from "../../words/states";
import type { TabProps } from "./tab_props";
import { linkToLog } from "./links";

interface Entry {
  at: number;
  state: string;
  what: string;
  detail?: string;
  log?: string;
}

export function Events({ job, live }: TabProps): JSX.Element {
  useEffect(() => live.readPast(), [live]);
  const entries = [
    ...timesOf(job),
    ...live.events.value.filter((event) => !isToldByJob(job, event)).flatMap(entryOf),
  ].sort((one, other) => one.at - other.at);
  return (
    <Card
      title="Events"
      aside={
        <Copy
          text={`curl -sSN -H "Authorization: Bearer $TOKEN" ${location.origin}/v1/jobs/${job.id}/events`}
          label="Copy the request that follows this job, for curl"
        >
          curl
        </Copy>
      }
    >
      {entries.length ? (
        <ol class="events">
          {entries.map((entry, index) => (
            <li key={index}>
              <Mark state={entry.state} />
              <time class="sub">{moment(entry.at)}</time>
              <div>
                <p>{entry.what}</p>
                {entry.detail && <code class="sub">{entry.detail}</code>}
                {entry.log && (
                  <p class="sub">
                    <a href={linkToLog(job.id, entry.log)}>{entry.log}</a>
                  </p>
                )}
              </div>
            </li>
          ))}
        </ol>
      ) : (
        <Empty>Nothing has happened yet.</Empty>
      )}
    </Card>
  );
}

/** Whether `timesOf` has it already. */
function isToldByJob(job: Job, { name, data }: LiveEvent): boolean {
  if (name !== "state") return false;
  return data["state"] === "processing"
    ? job.started !== null
    : isOver({ state: String(data["state"]) }) && job.ended !== null;
}

/** What a job says of itself: it is there when events are forgotten. */
function timesOf(job: Job): Entry[] {
  const entries: Entry[] = [{ at: Date.parse(job.submitted), state: "queued", what: "Submitted" }];
  if (job.started) entries.push({ at: Date.parse(job.started), state: "processing", what: "A leader has begun" });
  if (job.ended)
    entries.push({
      at: Date.parse(job.ended),
      state: job.state,
      what: capital(job.state),
      ...(job.failure ? { detail: job.failure.summary } : {}),
    });
  return entries;
}

function entryOf({ at, name, data }: LiveEvent): Entry[] {
  const text = (field: string): string => (typeof data[field] === "string" ? data[field] : "");
  if (name === "state") return [{ at, state: text("state"), what: capital(worded(text("state"))) }];
  if (name === "step")
    return [
      { at, state: text("state"), what: `Step ${text("step")} is ${worded(text("state"))}`, detail: text("why") },
    ];
  if (name === "size")
    return [
      {
        at,
        state: "processing",
        what: `A mini-batch now has ${counted(Number(data["items"]), "item")}`,
        detail: text("why"),
      },
    ];
  if (name !== "error") return [];
  const log = text("log");
  return [
    {
      at,
      state: "failed",
      what: capital(causeOf(text("category") || "error")),
      detail: text("message"),
      ...(log ? { log } : {}),
    },
  ];
}
