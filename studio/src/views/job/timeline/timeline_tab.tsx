// What each worker did in time: stragglers and gaps are in sight. The window is in the URL.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useEvery } from "../../../api/every";
import { getJson } from "../../../api/http";
import { usePicture } from "../../../api/loaded";
import { isOver } from "../../../api/live";
import { jobPath } from "../../../api/paths";
import type { Job, Timeline } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Empty, Shown } from "../../../parts/notice";
import { ask, place } from "../../../shell/router";
import { count } from "../../../words/numbers";
import { duration } from "../../../words/times";
import type { TabProps } from "../tab_props";
import { Lanes } from "./lanes_chart";
import { RunningNow } from "./running_now";
import { Slowest } from "./slowest";

const LANES = 40;
const BUCKETS = 400;
/** Of a job whose mini-batches take long nothing is heard, and its workers are at work all the same. */
const EVERY_MS = 1500;

export function TimelineTab({ job, live }: TabProps): JSX.Element {
  const { query } = place.value;
  const [begin, end] = [seconds(query.get("from")), seconds(query.get("to"))];
  const [lanes, setLanes] = useState(LANES);
  const round = useEvery(EVERY_MS);
  const path = jobPath(job.id, "/timeline", { begin_s: begin, end_s: end, buckets: BUCKETS, limit: lanes });
  const loaded = usePicture(
    job.id,
    (signal) => getJson<Timeline>(path, signal),
    isOver(job) ? live.revision.value : round,
    `${path} ${job.state}`,
  );
  const zoom = (from: number | undefined, to: number | undefined): void =>
    ask({ from: from?.toFixed(3), to: to?.toFixed(3) });

  return (
    <div class="stack">
      <Shown of={loaded}>
        {(timeline) =>
          timeline.lanes.length ? (
            <>
              <RunningNow job={job} timeline={timeline} />
              <Card
                title="Workers in time"
                aside={
                  <WindowControls timeline={timeline} isZoomed={begin !== undefined || end !== undefined} zoom={zoom} />
                }
              >
                <Lanes job={job} timeline={timeline} zoom={zoom} />
                {timeline.lanes_total > timeline.lanes.length && (
                  <p class="more">
                    <button type="button" onClick={() => setLanes(Math.min(200, lanes * 2))}>
                      {count(timeline.lanes.length)} of {count(timeline.lanes_total)} workers: show more
                    </button>
                  </p>
                )}
              </Card>
              <Slowest job={job} timeline={timeline} />
            </>
          ) : (
            <Empty>{nobodyYet(job, timeline)}</Empty>
          )
        }
      </Shown>
    </div>
  );
}

function nobodyYet(job: Job, { preparing }: Timeline): string {
  if (preparing.length) return `${preparing.join(", ")} prepare: code, environment or data that all workers need.`;
  return isOver(job) ? "No worker has begun." : "No worker has begun yet: the job waits for one.";
}

function WindowControls({
  timeline,
  isZoomed,
  zoom,
}: {
  timeline: Timeline;
  isZoomed: boolean;
  zoom: (from?: number, to?: number) => void;
}): JSX.Element {
  const { begin_s, end_s, length_s } = timeline;
  const by = (factor: number): void => {
    const [middle, half] = [(begin_s + end_s) / 2, ((end_s - begin_s) / 2) * factor];
    zoom(Math.max(0, middle - half), Math.min(length_s, middle + half));
  };
  return (
    <>
      <span class="sub">
        {duration(begin_s)} – {duration(end_s)} of {duration(length_s)}
      </span>
      <button type="button" class="bare" aria-label="Look closer" title="Look closer (+)" onClick={() => by(0.5)}>
        +
      </button>
      <button
        type="button"
        class="bare"
        aria-label="See more"
        title="See more (−)"
        disabled={!isZoomed}
        onClick={() => by(2)}
      >
        −
      </button>
      {isZoomed && (
        <button type="button" class="quiet" onClick={() => zoom(undefined, undefined)}>
          Show all
        </button>
      )}
    </>
  );
}

function seconds(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}(\.\d{1,6})?$/.test(text) ? Number(text) : undefined;
}
