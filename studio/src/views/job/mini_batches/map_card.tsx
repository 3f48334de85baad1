// The map of a job's mini-batches, with the way back out of where one has looked closer.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { getJson } from "../../../api/http";
import { isOver } from "../../../api/live";
import { usePicture } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, Tiles } from "../../../api/types";
import { roomFor } from "../../../charts/heat_grid";
import { HeatMap, nameOf, type Shade } from "../../../charts/heat_map";
import { Twin } from "../../../charts/twin";
import { useWidth } from "../../../charts/width";
import { Card } from "../../../parts/card";
import { Choice } from "../../../parts/choice";
import { Empty, Shown } from "../../../parts/notice";
import { ask, place } from "../../../shell/router";
import { count } from "../../../words/numbers";
import { duration } from "../../../words/times";
import type { Range } from "./range";

const NOT_RUN = "not run";

interface Props {
  job: Job;
  revision: number;
  range: Range;
  onOpen: (first: number, end: number) => void;
}

export function MapCard({ job, revision, range, onOpen }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const buckets = roomFor(width);
  const path = jobPath(job.id, "/tiles", { first: range.first || undefined, end: range.end, buckets });
  const tiles = usePicture(path, (signal) => getJson<Tiles>(path, signal), revision, job.state);
  const shade: Shade = place.value.query.get("shade") === "time" ? "time" : "state";
  const isZoomed = range.first > 0 || range.end !== undefined;
  const back = (): void => ask({ first: undefined, end: undefined });

  const aside = (
    <>
      {isZoomed && (
        <button type="button" class="quiet" onClick={back}>
          Show all
        </button>
      )}
      <Choice
        label="Color"
        value={shade}
        options={{ state: "State", time: "Run time" }}
        onChange={(value) => ask({ shade: value === "time" ? value : undefined })}
      />
    </>
  );
  return (
    <Card
      title={isZoomed ? `Map of ${count(range.first)} – ${count((range.end ?? range.first) - 1)}` : "Map"}
      aside={aside}
    >
      <div ref={box}>
        <Shown of={tiles}>
          {(value) =>
            value.completed.length ? (
              <TileMap tiles={value} width={width} shade={shade} hasEnded={isOver(job)} onOpen={onOpen} onBack={back} />
            ) : (
              <Empty>There are no mini-batches yet.</Empty>
            )
          }
        </Shown>
      </div>
    </Card>
  );
}

interface MapProps {
  tiles: Tiles;
  width: number;
  shade: Shade;
  /** What is not decided then will not be run. */
  hasEnded: boolean;
  onOpen: Props["onOpen"];
  onBack: () => void;
}

function TileMap({ tiles, width, shade, hasEnded, onOpen, onBack }: MapProps): JSX.Element {
  const numbers = [
    "Done",
    "Failed",
    "Running",
    hasEnded ? "Not run" : "Waiting",
    "Tried again",
    "Median run",
    "Longest run",
  ];
  const seconds = (value: number | null | undefined): string => (value == null ? "–" : duration(value));
  return (
    <Twin
      caption="Mini-batches by their numbers"
      columns={[{ name: "Mini-batches" }, ...numbers.map((name) => ({ name, isNumber: true }))]}
      rows={() =>
        tiles.completed.map((done, cell) => [
          nameOf(tiles, cell).replace(/^\S+ /, ""),
          count(done),
          count(tiles.failed[cell]!),
          count(tiles.running[cell]!),
          count(tiles.waiting[cell]!),
          count(tiles.retried[cell]!),
          seconds(tiles.median_run_s[cell]),
          seconds(tiles.max_run_s[cell]),
        ])
      }
    >
      <HeatMap
        tiles={tiles}
        width={width}
        shade={shade}
        undecided={hasEnded ? NOT_RUN : "waiting"}
        onOpen={onOpen}
        onBack={onBack}
      />
      <Key tiles={tiles} shade={shade} hasEnded={hasEnded} />
    </Twin>
  );
}

function Key({ tiles, shade, hasEnded }: { tiles: Tiles; shade: Shade; hasEnded: boolean }): JSX.Element {
  if (shade === "state")
    return (
      <ul class="key">
        {["done", "failed", ...(hasEnded ? [] : ["running"]), "waiting"].map((name) => (
          <li key={name} class={name}>
            {name === "waiting" && hasEnded ? NOT_RUN : name}
          </li>
        ))}
      </ul>
    );
  const times = tiles.median_run_s.filter((each): each is number => each !== null);
  if (!times.length) return <p class="sub">No mini-batch has run yet.</p>;
  return (
    <p class="ramp">
      {duration(Math.min(...times))} <i /> {duration(Math.max(...times))}
    </p>
  );
}
