// Schedules: when each is due next, what became of the last times, and what can be done with it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useEvery } from "../api/every";
import { getJson, send, type Problem } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { Fire, FirePage, Job, JobSummaryPage, Schedule, SchedulePage } from "../api/types";
import { Card } from "../parts/card";
import { Command } from "../parts/command";
import { useDefiner, type Definer } from "../parts/define";
import { Empty, Shown, Trouble } from "../parts/notice";
import { Coded } from "../parts/prose";
import { State } from "../parts/state";
import { ask, go, place } from "../shell/router";
import { moment } from "../words/times";

const EVERY_MS = 10_000;
const LAST = 10;
const ABOUT = "When, and which job: one that there is, by its id, or a new one. Fields are in docs/schedules.md.";

const documentOf = (job: string): string => `trigger:
  type: cron
  expression: "30 2 * * *"
  time_zone: ${Intl.DateTimeFormat().resolvedOptions().timeZone}
create_job: azureml:${job}
`;

/** Of times that have made no job. */
const OUTCOMES: Partial<Record<Fire["outcome"], string>> = { skipped: "skipped", missed: "failed" };

export function Schedules(): JSX.Element {
  const round = useEvery(EVERY_MS);
  const loaded = useLoaded("schedules", (signal) => getJson<SchedulePage>(apiPath("/schedules"), signal), round);
  // From the page of a job, one comes here to have it made again and again.
  const from = place.value.query.get("of") ?? "";
  const definer = useDefiner({
    noun: "schedule",
    about: ABOUT,
    first: documentOf(from || "JOB"),
    isBegun: from !== "",
    onDone: () => {
      ask({ of: "" });
      loaded.reload();
    },
  });
  return (
    <div class="page stack">
      <div class="heading">
        <h1>Schedules</h1>
        {definer.create}
      </div>
      {definer.dialog}
      <Shown of={loaded}>
        {({ items }) =>
          items.length ? (
            items.map((each) => (
              <OneSchedule key={each.name} of={each} round={round} reload={loaded.reload} edit={definer.edit} />
            ))
          ) : (
            <>
              <Empty>No schedule yet. A schedule makes a job whenever it is due:</Empty>
              <Command text="parallelrun schedule create --file schedule.yml" />
            </>
          )
        }
      </Shown>
    </div>
  );
}

interface OneProps {
  of: Schedule;
  round: number;
  reload: () => void;
  edit: Definer["edit"];
}

function OneSchedule({ of, round, reload, edit }: OneProps): JSX.Element {
  const [problem, tell] = useState<Problem | undefined>(undefined);
  const path = `/schedules/${encodeURIComponent(of.name)}`;
  const act = (verb: string, then: (answer: unknown) => void): void => {
    send<unknown>("POST", apiPath(`${path}:${verb}`)).then(then, tell);
  };
  return (
    <Card
      title={of.display_name || of.name}
      aside={
        <>
          <span class="chip">{of.enabled ? "enabled" : "paused"}</span>
          <button type="button" onClick={() => act(of.enabled ? "disable" : "enable", reload)}>
            {of.enabled ? "Pause" : "Go on"}
          </button>
          <button type="button" onClick={() => act("trigger", (job) => go(`/jobs/${(job as Job).id}`))}>
            Run now
          </button>
          {of.last?.job_id && edit({ name: of.name, definition: definitionOf(of, of.last.job_id) })}
        </>
      }
    >
      {problem && <Trouble problem={problem} />}
      {of.description && <p>{of.description}</p>}
      <dl class="pairs left">
        <div>
          <dt>Due</dt>
          <dd>
            <code>{of.due}</code>
          </dd>
        </div>
        <div>
          <dt>Next</dt>
          <dd>{of.next[0] ? moment(of.next[0]) : "–"}</dd>
        </div>
        <div>
          <dt>Jobs</dt>
          <dd>
            <a href={`/jobs?maker=${encodeURIComponent(`schedule:${of.name}`)}`}>
              {of.job.name || "all that it has made"}
            </a>
          </dd>
        </div>
      </dl>
      <History path={path} name={of.name} round={round} />
    </Card>
  );
}

/** What defines it: its job is the one that it has made last. */
const definitionOf = (of: Schedule, job: string): Record<string, unknown> => ({
  ...(of.display_name ? { display_name: of.display_name } : {}),
  ...(of.description ? { description: of.description } : {}),
  ...(Object.keys(of.tags).length ? { tags: of.tags } : {}),
  trigger: of.trigger,
  missed_runs: of.missed_runs,
  allow_overlap: of.allow_overlap,
  create_job: `azureml:${job}`,
});

function History({ path, name, round }: { path: string; name: string; round: number }): JSX.Element | null {
  const { value } = useLoaded(
    path,
    (signal) => getJson<FirePage>(apiPath(`${path}/history`, { limit: LAST }), signal),
    round,
  );
  const made = apiPath("/job-summaries", { maker: `schedule:${name}`, limit: LAST });
  const jobs = useLoaded(made, (signal) => getJson<JobSummaryPage>(made, signal), round);
  if (!value?.items.length) return null;
  const states = new Map(jobs.value?.items.map(({ id, state }) => [id, state]));
  return (
    <ul class="fires" aria-label={`Last times of ${name}`}>
      {value.items.map((fire) => {
        const state = OUTCOMES[fire.outcome] ?? states.get(fire.job_id ?? "");
        return (
          <li key={`${fire.due} ${fire.at}`}>
            {fire.job_id ? <a href={`/jobs/${fire.job_id}`}>{moment(fire.due)}</a> : moment(fire.due)}
            {state && <State state={state} />}
            <span class="sub">
              <Coded text={[fire.outcome === "manual" && "run by hand", fire.why].filter(Boolean).join(": ")} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}
