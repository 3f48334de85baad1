// Tables in text, as the reports of a job are: a row a line, the names of the columns in the first.

export type Row = Record<string, string>;

export function rowsOf(csv: string): Row[] {
  const [head = [], ...rows] = parsed(csv);
  // The last line may still be written.
  return rows
    .filter((row) => row.length === head.length)
    .map((row) => Object.fromEntries(row.map((cell, index) => [head[index]!, cell])));
}

/** RFC 4180: cells may be in quotes, with line breaks and doubled quotes in them. */
function parsed(csv: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)) {
    row.push(quoted === undefined ? plain! : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    if (row.length > 1 || row[0]) rows.push(row);
    row = [];
  }
  return rows;
}

/** NaN: there is no such column, or no number in it. */
export const numberIn = (row: Row, column: string): number => (row[column] ? Number(row[column]) : NaN);
