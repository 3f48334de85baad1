// Mini-batches one by one, a page at a time: of a state, in an order, in the range that the map shows.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isOver } from "../../../api/live";
import { useLoaded } from "../../../api/loaded";
import { loadPages } from "../../../api/pages";
import { jobPath } from "../../../api/paths";
import type { Job, MiniBatch, MiniBatchPage } from "../../../api/types";
import { DataTable, type Column } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { Choice } from "../../../parts/choice";
import { Icon } from "../../../parts/icon";
import { Empty, Shown } from "../../../parts/notice";
import { State } from "../../../parts/state";
import { ask, linkWith, place } from "../../../shell/router";
import { causeOf } from "../../../words/errors";
import { bytes, count } from "../../../words/numbers";
import { clock, duration } from "../../../words/times";
import type { Range } from "./range";

const PAGE = 25;
const DECIDED = { "": "decided", failed: "failed", done: "done" };
const OPEN = { ...DECIDED, running: "running", ready: "waiting" };
const ORDERS = { "": "by number", slowest: "slowest first" };

export function Listed({ job, revision, range }: { job: Job; revision: number; range: Range }): JSX.Element {
  const { query } = place.value;
  const state = query.get("state") ?? "";
  const order = query.get("order") ?? "";
  const [node, process, category, input] = ["node", "process", "category", "input"].map(
    (name) => query.get(name) ?? "",
  );
  const hasOrder = state !== "running" && state !== "ready";
  const asked = {
    status: state,
    limit: PAGE,
    ...(hasOrder
      ? {
          order_by: input ? "id" : order || "id",
          first: range.first || undefined,
          end: range.end,
          inputs: "true",
          node,
          process,
          category,
          input,
        }
      : {}),
  };
  const path = jobPath(job.id, "/mini-batches", asked);
  const [pages, setPages] = useState(1);
  useEffect(() => setPages(1), [path]);
  const load = (signal: AbortSignal): Promise<MiniBatchPage> =>
    loadPages((page_token) => jobPath(job.id, "/mini-batches", { ...asked, page_token }), pages, signal);
  const listed = useLoaded(path, load, revision, `${pages} ${job.state}`);
  return (
    <Card
      title="Mini-batches"
      aside={
        <>
          <Choice
            label="State"
            value={state}
            options={isOver(job) ? DECIDED : OPEN}
            onChange={(value) => ask({ state: value })}
          />
          {hasOrder && !input && (
            <Choice label="Order" value={order} options={ORDERS} onChange={(value) => ask({ order: value })} />
          )}
          {hasOrder && (
            <>
              <Pick name="node" title="Node" values={listed.value?.nodes ?? []} />
              <Pick name="process" title="Worker" values={listed.value?.processes ?? []} />
              <Pick name="category" title="Error" values={listed.value?.categories ?? []} inWords={causeOf} />
              <label class="search">
                <Icon name="search" />
                <span class="unseen">Name of an input</span>
                <input
                  type="search"
                  placeholder="Name of an input"
                  value={input}
                  onInput={(event) => ask({ input: event.currentTarget.value })}
                />
              </label>
            </>
          )}
        </>
      }
    >
      <Shown of={listed}>
        {({ items, next_page_token }) => (
          <>
            {items.length ? (
              <DataTable caption="Mini-batches" name="mini-batches" columns={COLUMNS} rows={items.map(cellsOf)} />
            ) : (
              <Empty>{nothing(job, state)}</Empty>
            )}
            {next_page_token && (
              <p class="more">
                <button type="button" onClick={() => setPages(pages + 1)}>
                  Show more
                </button>
              </p>
            )}
          </>
        )}
      </Shown>
    </Card>
  );
}

/** Why no mini-batch is listed. */
function nothing(job: Job, state: string): string {
  const { done, failed } = job.progress;
  if (done + failed || state === "running" || state === "ready") return "None is like this.";
  if (!isOver(job)) return "No mini-batch is decided yet.";
  return `No mini-batch was run${job.failure?.code === "INIT_FAILED" ? ": init() failed" : ""}.`;
}

interface PickProps {
  name: string;
  title: string;
  values: string[];
  inWords?: (value: string) => string;
}

/** A filter by one of a few values; nothing where there is no choice. */
function Pick({ name, title, values, inWords }: PickProps): JSX.Element | null {
  const value = place.value.query.get(name) ?? "";
  if (values.length < 2 && !value) return null;
  return (
    <label class="pick">
      {title}
      <select value={value} onChange={(event) => ask({ [name]: event.currentTarget.value })}>
        <option value="">any</option>
        {[...new Set([...values, ...(value ? [value] : [])])].map((each) => (
          <option key={each} value={each}>
            {inWords?.(each) ?? each}
          </option>
        ))}
      </select>
    </label>
  );
}

const COLUMNS: Column[] = [
  { name: "Mini-batch", isHead: true },
  { name: "First input" },
  { name: "State" },
  { name: "Tries", isNumber: true },
  { name: "Items", isNumber: true },
  { name: "run()", isNumber: true },
  { name: "Whole", isNumber: true },
  { name: "Peak memory", isNumber: true },
  { name: "Worker" },
  { name: "Began", isNumber: true },
];

function cellsOf(of: MiniBatch): ComponentChildren[] {
  const isOpen = place.value.query.get("id") === String(of.id);
  const seconds = (value: number | null): string => (value === null ? "–" : duration(value));
  return [
    <a class="row" href={linkWith({ id: String(of.id) })} aria-current={isOpen ? "true" : undefined}>
      {count(of.id)}
    </a>,
    of.first_input ? <code title={of.first_input}>{of.first_input.split("/").pop()}</code> : "–",
    <>
      <State state={of.status} />
      {of.failure && (
        <span class="message sub">
          {causeOf(of.failure.category)} <code>{of.failure.message}</code>
        </span>
      )}
    </>,
    of.tries ?? "–",
    <>
      {of.items === null ? "–" : count(of.items)}
      {of.failed_items ? <span class="bad"> ({count(of.failed_items)} failed)</span> : null}
    </>,
    seconds(of.run_s),
    seconds(of.elapsed_s),
    of.peak_memory_bytes ? bytes(of.peak_memory_bytes) : "–",
    `${of.node}${of.process && `/${of.process}`}`,
    of.started ? clock(of.started) : "–",
  ];
}
