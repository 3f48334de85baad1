// Calls from the top down: each as wide as its time, below the one that has made it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, ProfileCall, ProfileTree } from "../../../api/types";
import { Twin } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { percent } from "../../../words/numbers";
import { duration } from "../../../words/times";

interface Box {
  call: ProfileCall;
  left: number;
  width: number;
}

const ROW = 22;
/** Narrower ones, as shares of the whole, can't be seen. */
const LEAST = 0.002;

export function Icicle({ job, node, process }: { job: Job; node: string; process: string }): JSX.Element | null {
  const path = jobPath(job.id, "/profile/tree", { node, process });
  const { value } = useLoaded(path, (signal) => getJson<ProfileTree>(path, signal));
  const [shown, show] = useState<ProfileCall | undefined>(undefined);
  if (!value?.items.length) return null;
  const boxes = boxesOf(value);
  const depth = Math.max(...boxes.map(({ call }) => call.depth));
  return (
    <Card title="Calls">
      <Twin
        caption="Calls"
        columns={[{ name: "Call" }, { name: "Time", isNumber: true }, { name: "By itself", isNumber: true }]}
        rows={() =>
          value.items.map((call) => [
            `${"  ".repeat(call.depth)}${call.function}`,
            duration(call.seconds),
            duration(call.own_s),
          ])
        }
      >
        <div class="icicle" style={{ height: `${(depth + 1) * ROW}px` }} onPointerLeave={() => show(undefined)}>
          {boxes.map(({ call, left, width }, index) => (
            <span
              key={index}
              class={`call c${call.depth % 4}`}
              style={{ left: `${left * 100}%`, width: `${width * 100}%`, top: `${call.depth * ROW}px` }}
              onPointerEnter={() => show(call)}
            >
              {call.function}
            </span>
          ))}
        </div>
        <p class="readout">
          {shown
            ? `${shown.function}${shown.file && ` in ${shown.file}:${shown.line}`}: ${duration(shown.seconds)} (${percent(shown.seconds / value.total_s)}), ${duration(shown.own_s)} by itself`
            : "Each call is as wide as its time, below the one that has made it."}
        </p>
      </Twin>
    </Card>
  );
}

function boxesOf({ total_s, items }: ProfileTree): Box[] {
  const boxes: Box[] = [];
  /** Where the next call of each call begins; the last one is of the top. */
  const next = new Map<number, number>([[-1, 0]]);
  items.forEach((call, index) => {
    const left = next.get(call.parent) ?? 0;
    const width = total_s ? call.seconds / total_s : 0;
    next.set(call.parent, left + width);
    next.set(index, left);
    boxes.push({ call, left, width });
  });
  return boxes.filter(({ width }) => width >= LEAST);
}
