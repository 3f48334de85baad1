// The mini-batches of a job: a map of all, a table of some, and one of them with all its tries; what has failed in them.
// The URL says which.

import type { JSX } from "preact";
import { ask, place } from "../../../shell/router";
import type { TabProps } from "../tab_props";
import { FailedItems } from "./failed_items";
import { Listed } from "./listed";
import { MapCard } from "./map_card";
import { OneMiniBatch } from "./one";
import type { Range } from "./range";

export function MiniBatches({ job, live }: TabProps): JSX.Element {
  const { query } = place.value;
  const range: Range = { first: whole(query.get("first")) ?? 0, end: whole(query.get("end")) };
  const id = whole(query.get("id"));
  const revision = live.revision.value;
  const open = (first: number, end: number): void =>
    end - first === 1 ? ask({ id: String(first) }) : ask({ first: String(first), end: String(end) });
  return (
    <div class="stack">
      <MapCard job={job} revision={revision} range={range} onOpen={open} />
      {id !== undefined && <OneMiniBatch key={id} job={job} id={id} revision={revision} />}
      <FailedItems job={job} />
      <Listed job={job} revision={revision} range={range} />
    </div>
  );
}

function whole(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
