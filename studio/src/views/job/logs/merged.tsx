// The logs of all workers as one, by time: the newest lines, and those before them when they are asked for.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useEvery } from "../../../api/every";
import { getJson } from "../../../api/http";
import { isOver } from "../../../api/live";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, MergedLine, MergedLines } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Choice } from "../../../parts/choice";
import { Empty, Shown } from "../../../parts/notice";
import { ask, place } from "../../../shell/router";
import { count, counted } from "../../../words/numbers";
import { clock } from "../../../words/times";
import { linkToLog, linkToMiniBatch } from "../links";

const EVERY_MS = 2000;
const LINES = 300;
const LEVELS = { all: "All", WARNING: "Warnings", ERROR: "Errors" };
const SOURCES = { yours: "Yours", all: "And the engine's" };

export function MergedLogs({ job, workers }: { job: Job; workers: string[] }): JSX.Element {
  const { query } = place.value;
  const level = query.get("level") ?? "all";
  const source = query.get("source") ?? "yours";
  const filters = {
    source,
    level: level === "all" ? undefined : level,
    worker: query.get("worker") ?? undefined,
    mini_batch: query.get("mini_batch") ?? undefined,
  };
  return (
    <Card
      title="All workers by time"
      kind="log"
      aside={
        <>
          <Choice
            label="Level"
            value={level}
            options={LEVELS}
            onChange={(value) => ask({ level: value === "all" ? undefined : value })}
          />
          <Choice
            label="Whose logs"
            value={source}
            options={SOURCES}
            onChange={(value) => ask({ source: value === "yours" ? undefined : value })}
          />
          <select
            aria-label="Worker"
            value={filters.worker ?? ""}
            onChange={(event) => ask({ worker: event.currentTarget.value })}
          >
            <option value="">all workers</option>
            {workers.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
          <input
            type="search"
            inputMode="numeric"
            class="number"
            aria-label="Mini-batch"
            placeholder="mini-batch"
            value={filters.mini_batch ?? ""}
            onChange={(event) => ask({ mini_batch: event.currentTarget.value.replace(/\D/g, "") })}
          />
        </>
      }
    >
      <Lines key={JSON.stringify(filters)} job={job} filters={filters} />
    </Card>
  );
}

function Lines({ job, filters }: { job: Job; filters: Record<string, string | undefined> }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [before, setBefore] = useState<MergedLines | undefined>(undefined);
  const round = useEvery(EVERY_MS);
  const page = (token: string | undefined, signal?: AbortSignal): Promise<MergedLines> =>
    getJson(jobPath(job.id, "/merged-logs", { ...filters, order: "newest", limit: LINES, page_token: token }), signal);
  // What is shown above the newest page must go on where it begins: it stays as it is then.
  const latest = useLoaded(job.id, (signal) => page(undefined, signal), isOver(job) || before ? 0 : round);
  const token = before ? before.next_page_token : latest.value?.next_page_token;
  const earlier = async (): Promise<void> => {
    const next = await page(token ?? undefined);
    setBefore({ ...next, items: [...next.items, ...(before?.items ?? [])] });
  };
  // With filters, a page may have no line: the next one is asked for at once.
  const lines = [...(before?.items ?? []), ...(latest.value?.items ?? [])];
  useEffect(() => {
    if (latest.value && token && lines.length < 20) void earlier();
  }, [token]);
  useLayoutEffect(() => {
    if (box.current && !before) box.current.scrollTop = box.current.scrollHeight;
  }, [latest.value]);
  return (
    <Shown of={latest}>
      {({ files, files_left_out }) => (
        <>
          <div class="log-lines merged" ref={box} tabIndex={0} role="region" aria-label="Lines of all workers">
            {token && (
              <button type="button" class="quiet" onClick={() => void earlier()}>
                Show earlier lines
              </button>
            )}
            {lines.length ? (
              <ol>
                {lines.map((line) => (
                  <Line key={`${line.path} ${line.offset}`} job={job} line={line} />
                ))}
              </ol>
            ) : (
              <Empty>{token ? "Searching in earlier lines …" : "Nothing was said like this."}</Empty>
            )}
          </div>
          <p class="sub">
            {counted(files, "log")} merged
            {files_left_out > 0 && `; ${count(files_left_out)} more are left out: choose a worker`}
            {lines.some(({ has_time }) => !has_time) &&
              ". Lines with ~ have no time of their own: they stand where their worker began"}
          </p>
        </>
      )}
    </Shown>
  );
}

function Line({ job, line }: { job: Job; line: MergedLine }): JSX.Element {
  const worker = line.node ? `${line.node}/${line.process}` : "leader";
  const level = (line.level ?? "").toLowerCase();
  return (
    <li class={level}>
      <a class="when" href={linkToLog(job.id, line.path, line.offset)} title={`${line.path}, ${line.source}`}>
        {!line.has_time && "~"}
        {clock(line.at).split(" ")[0]}
      </a>
      <span class="who">{worker}</span>
      {line.mini_batch === null ? <span /> : <a href={linkToMiniBatch(job.id, line.mini_batch)}>{line.mini_batch}</a>}
      <code>
        {line.source !== "stdout" && line.level && <b>{line.level} </b>}
        {line.text}
        {line.is_cut && " …"}
      </code>
    </li>
  );
}
