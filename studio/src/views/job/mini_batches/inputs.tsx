// What one mini-batch consists of: files, or ranges of tables, to look at and to take along.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { InputRange, MiniBatchInputs } from "../../../api/types";
import { Copy } from "../../../parts/copy";
import { count, counted } from "../../../words/numbers";

const FEW = 5;

export function Inputs({ job, id }: { job: string; id: number }): JSX.Element | null {
  const path = jobPath(job, `/mini-batches/${id}/inputs`);
  const { value } = useLoaded(path, (signal) => getJson<MiniBatchInputs>(path, signal));
  if (!value) return null;
  const names = [...value.files, ...value.ranges.map(told)];
  const keys = value.keys.map((key) => key ?? "null").join(", ");
  const list = (
    <ul class="evidence inputs">
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>
        </li>
      ))}
    </ul>
  );
  const title = `${counted(value.total, "input")}${keys && ` of ${keys}`}`;
  return (
    <div class="inputs">
      <p class="heading">
        <b>{title}</b>
        <Copy text={names.join("\n")} label="Copy the names of its inputs">
          Copy
        </Copy>
      </p>
      {names.length > FEW ? (
        <details>
          <summary>
            <code>{names[0]}</code> and {count(value.total - 1)} more
          </summary>
          {list}
        </details>
      ) : (
        list
      )}
    </div>
  );
}

function told({ path, start, end, first_row, rows }: InputRange): string {
  if (first_row !== null)
    return `${path}, rows ${first_row}${rows === null ? " and on" : ` to ${first_row + rows - 1}`}`;
  return `${path}, from ${start}${end === null ? " to its end" : ` to ${end}`}`;
}
