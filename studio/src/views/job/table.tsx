// The first rows of an output as a table: sorted by a column, narrowed by a word, and a column as a histogram.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { filePath, jobPath } from "../../api/paths";
import type { InputPreview, Job, OutputTable } from "../../api/types";
import { HeadOf } from "../../parts/head_of";
import { Shown } from "../../parts/notice";
import { count, counted, short } from "../../words/numbers";

export const ROWS = 500;
const BINS = 20;

/** A file that is no table has no columns: its first lines are shown. */
export function Table({ job, path, size }: { job: Job; path: string; size: number }): JSX.Element {
  const loaded = useLoaded(path, (signal) =>
    getJson<OutputTable>(jobPath(job.id, "/output-table", { path, rows: ROWS }), signal),
  );
  return (
    <Shown of={loaded}>
      {(table) =>
        table.columns.length ? <Grid of={table} /> : <HeadOf path={filePath(job.id, "outputs", path)} size={size} />
      }
    </Shown>
  );
}

type Cell = string | null | undefined;
/** Values come as Python writes them. */
const shown = (cell: Cell): string => (cell ?? "").replace(/^(['"])(.*)\1$/s, "$2");
const numberOf = (cell: Cell): number => (cell ? Number(shown(cell)) : NaN);

export function Grid({ of }: { of: InputPreview & Partial<OutputTable> }): JSX.Element {
  const [by, sortBy] = useState("");
  const [isUp, turn] = useState(true);
  const [word, narrow] = useState("");
  const isMet = (cell: Cell): boolean => shown(cell).toLowerCase().includes(word.toLowerCase());
  const kept = of.rows.filter((row) => Object.values(row).some(isMet));
  const rows = by ? kept.toSorted((one, other) => (isUp ? 1 : -1) * compared(one[by], other[by])) : kept;
  return (
    <>
      <p class="sub">
        <input
          type="search"
          aria-label="Rows with"
          placeholder="rows with"
          onInput={(event) => narrow(event.currentTarget.value)}
        />{" "}
        {sizeOf(of, word ? kept.length : undefined)}
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead>
            <tr>
              {of.columns.map(({ name, type }) => (
                <th
                  key={name}
                  scope="col"
                  class={isNumber(type) ? "number" : ""}
                  aria-sort={name === by ? (isUp ? "ascending" : "descending") : undefined}
                >
                  <button
                    type="button"
                    class="quiet"
                    onClick={() => {
                      turn(name !== by || !isUp);
                      sortBy(name);
                    }}
                  >
                    {name}
                    {name === by && (isUp ? " ↑" : " ↓")}
                  </button>
                  <small class="sub">{type}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {of.columns.map(({ name, type }) => (
                  <td key={name} class={isNumber(type) ? "number" : ""}>
                    {row[name] === null ? "null" : shown(row[name])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {by && <Histogram name={by} cells={kept.map((row) => row[by])} />}
    </>
  );
}

const isNumber = (type: string): boolean => /int|float|double|long|decimal/i.test(type);

/** How many rows are shown, of how many; met: those with the word that is looked for. */
function sizeOf({ rows, total_rows, is_complete }: InputPreview & Partial<OutputTable>, met?: number): string {
  const all = total_rows ?? (is_complete && rows.length < ROWS ? rows.length : undefined);
  if (all === rows.length)
    return met === undefined ? `${counted(all, "row")}, which are all` : `${counted(met, "row")} of ${count(all)}`;
  const first = `first ${counted(rows.length, "row")}`;
  const rest = all === undefined ? "; there may be more" : ` of ${count(all)}`;
  return `${met === undefined ? "The" : `${count(met)} of the`} ${first}${rest}`;
}

function compared(one: Cell, other: Cell): number {
  const by = numberOf(one) - numberOf(other);
  return Number.isNaN(by) ? shown(one).localeCompare(shown(other)) : by;
}

function Histogram({ name, cells }: { name: string; cells: Cell[] }): JSX.Element | null {
  const numbers = cells.map(numberOf).filter(Number.isFinite);
  if (numbers.length < 2) return null;
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const bins = Array<number>(BINS).fill(0);
  for (const each of numbers) bins[Math.min(BINS - 1, Math.floor(((each - least) / (most - least || 1)) * BINS))]! += 1;
  const highest = Math.max(...bins);
  const label = `${name}: ${short(least)} to ${short(most)}`;
  return (
    <figure>
      <svg class="histogram" viewBox={`0 0 ${BINS} 10`} preserveAspectRatio="none" role="img" aria-label={label}>
        {bins.map((bin, index) => (
          <rect key={index} x={index + 0.1} width="0.8" y={10 - (10 * bin) / highest} height={(10 * bin) / highest} />
        ))}
      </svg>
      <figcaption class="sub">{label}</figcaption>
    </figure>
  );
}
