// What one mini-batch consists of: files, or ranges of tables, to look at and to take along.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { InputRange, MiniBatchInputs } from "../../../api/types";
import { Command } from "../../../parts/command";
import { Copy } from "../../../parts/copy";
import { HeadOf } from "../../../parts/head_of";
import { isPicture, Picture } from "../../../parts/picture";
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
      {names.map((name, at) => (
        <OneInput key={name} name={name} url={jobPath(job, `/mini-batches/${id}/inputs/${at}`)} isOnly={!names[1]} />
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
      {!value.ranges.length && (
        <>
          <p class="sub">To run this one on your machine, in the folder of the code:</p>
          <Command text={`parallelrun job replay ${job} ${id}`} />
        </>
      )}
    </div>
  );
}

/** A file with its first lines or as a picture; what is in an object store, the server can't read. */
function OneInput({ name, url, isOnly }: { name: string; url: string; isOnly: boolean }): JSX.Element {
  const [isOpen, setOpen] = useState(isOnly);
  const copy = !isOnly && <Copy text={name} label={`Copy ${name}`} />; // of one alone, there is a button above
  if (name.includes("://"))
    return (
      <li>
        <code>{name}</code> {copy}
      </li>
    );
  if (isPicture(name))
    return (
      <li>
        <Picture url={url} name={name.split("/").pop()!} />
        <code>{name}</code> {copy}
      </li>
    );
  return (
    <li class="input">
      <details open={isOnly} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <code>{name}</code>
        </summary>
        {isOpen && <HeadOf path={url} />}
      </details>
      {copy}
    </li>
  );
}

function told({ path, start, end, first_row, rows }: InputRange): string {
  if (first_row !== null)
    return `${path}, rows ${first_row}${rows === null ? " and on" : ` to ${first_row + rows - 1}`}`;
  return `${path}, from ${start}${end === null ? " to its end" : ` to ${end}`}`;
}
