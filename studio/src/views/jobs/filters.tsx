// What narrows the list of jobs.

import type { JSX } from "preact";
import type { JobState } from "../../api/types";
import { Icon } from "../../parts/icon";
import { Mark } from "../../parts/state";
import { ask, linkWith, place } from "../../shell/router";
import { count } from "../../words/numbers";
import { worded } from "../../words/states";
import { NARROWING, RANGES } from "./search";

const STATES: ("" | JobState)[] = ["", "queued", "processing", "finalizing", "completed", "failed", "canceled"];

/** How many jobs are in each state, among those that the other filters let through; undefined: not known yet. */
export type Counts = Partial<Record<JobState, number>> | undefined;

/** `waiting`: jobs among those in processing that have no worker yet. */
export function Filters({ counts, waiting }: { counts: Counts; waiting: number }): JSX.Element {
  const { query } = place.value;
  const state = query.get("state") ?? "";
  const all = Object.values(counts ?? {}).reduce((sum, each) => sum + each, 0);
  return (
    <div class="filters">
      <nav class="choices" aria-label="State">
        {STATES.map((each) => (
          <a key={each} href={linkWith({ state: each })} aria-current={each === state ? "true" : undefined}>
            {each ? <Mark state={each} /> : null}
            {each ? worded(each) : "all"}
            {counts && <span class="sub">{count(each ? (counts[each] ?? 0) : all)}</span>}
            {each === "processing" && waiting > 0 && <span class="sub">({count(waiting)} waiting)</span>}
          </a>
        ))}
      </nav>
      <label>
        <span class="unseen">Submitted</span>
        <select value={query.get("range") ?? ""} onChange={(event) => ask({ range: event.currentTarget.value })}>
          <option value="">any time</option>
          {Object.entries(RANGES).map(([range, { title }]) => (
            <option key={range} value={range}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label class="search">
        <Icon name="search" />
        <span class="unseen">Name, id or tag</span>
        <input
          type="search"
          placeholder="Name, id, tag, compute, maker"
          value={query.get("q") ?? ""}
          onInput={(event) => ask({ q: event.currentTarget.value })}
        />
      </label>
      {NARROWING.filter((name) => query.get(name)).map((name) => (
        <a key={name} class="chip" href={linkWith({ [name]: "" })} title={`Show jobs of any ${name}`}>
          {name}: {query.get(name)} <Icon name="cross" />
        </a>
      ))}
    </div>
  );
}
