// A chart with its twin: the same as a table, for those who can't see the chart or want the numbers.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

export interface Column {
  name: string;
  isNumber?: boolean;
  /** It names the row. */
  isHead?: boolean;
}

interface Props {
  caption: string;
  columns: Column[];
  /** Called when the table is shown. */
  rows: () => ComponentChildren[][];
  children: ComponentChildren;
}

const MOST_ROWS = 1000;

export function Twin({ caption, columns, rows, children }: Props): JSX.Element {
  const [isTable, setTable] = useState(false);
  return (
    <div class="twin">
      {isTable ? <DataTable caption={caption} columns={columns} rows={rows()} /> : children}
      <button type="button" class="quiet swap" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
        {isTable ? "Show as chart" : "Show as table"}
      </button>
    </div>
  );
}

export function DataTable({
  caption,
  columns,
  rows,
  name,
}: {
  caption: string;
  columns: Column[];
  rows: ComponentChildren[][];
  /** Of a table that is as tall as it has rows, up to a part of the window: its class. */
  name?: string;
}): JSX.Element {
  const cellOf = (cell: ComponentChildren, column: number): JSX.Element => {
    const kind = columns[column]?.isNumber ? "number" : "";
    return columns[column]?.isHead ? (
      <th key={column} scope="row" class={kind}>
        {cell}
      </th>
    ) : (
      <td key={column} class={kind}>
        {cell}
      </td>
    );
  };
  return (
    <div class={name ? "scroll tall" : "scroll"} tabIndex={0} role="region" aria-label={`Table: ${caption}`}>
      <table class={name}>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" class={isNumber ? "number" : ""}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MOST_ROWS).map((row, index) => (
            <tr key={index}>{row.map(cellOf)}</tr>
          ))}
        </tbody>
      </table>
      {rows.length > MOST_ROWS && (
        <p class="sub">
          The first {MOST_ROWS} of {rows.length} rows.
        </p>
      )}
    </div>
  );
}
