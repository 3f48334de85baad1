// The inputs of a job as run() would get them: files, or the first rows of tables with the types of their columns.

import type { JSX } from "preact";
import type { DataPreview, InputPreview } from "../../api/types";
import { DataTable } from "../../charts/twin";
import { Copy } from "../../parts/copy";
import { Prose } from "../../parts/prose";
import { counted } from "../../words/numbers";

export function Inputs({ of }: { of: DataPreview }): JSX.Element {
  return (
    <>
      {of.items.map((input) => (
        <OneInput key={input.name} of={input} />
      ))}
    </>
  );
}

function OneInput({ of }: { of: InputPreview }): JSX.Element {
  return (
    <div class="input-preview">
      <h3>{of.name}</h3>
      <p class="sub">
        {counted(of.files, "file")}
        {of.is_complete ? "" : " or more"}; run() gets{" "}
        {of.kind === "files" || of.read ? "paths of files" : `rows of ${of.kind}`}
      </p>
      {of.read && (
        <p class="sub">
          With <code>transformations: [{JSON.stringify(of.read)}]</code> in the input, run() gets these rows:
        </p>
      )}
      {[...of.errors, ...of.warnings].map((each) => (
        <p key={each} class="bad">
          <Prose text={each} />
        </p>
      ))}
      <p class="sub">
        {[filesBy("encoding", of.encodings), filesBy("compression", of.compressions), sampleOf(of)]
          .filter(Boolean)
          .join("; ")}
      </p>
      {of.columns.length ? (
        <DataTable
          caption={`First rows of ${of.name}`}
          columns={of.columns.map(({ name, type }) => ({ name: `${name} (${type})` }))}
          rows={of.rows.map((row) => of.columns.map(({ name }) => row[name] ?? "null"))}
        />
      ) : (
        <ul class="evidence">
          {of.first_files.map((path) => (
            <li key={path}>
              <code>{path}</code> <Copy text={path} label={`Copy ${path}`} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** How many of the first files have which encoding, or compression. */
const filesBy = (label: string, counts: Record<string, number>): string => {
  const words = Object.entries(counts).map(([name, count]) => `${name} (${counted(count, "file")})`);
  return words.length ? `${label} ${words.join(", ")}` : "";
};

function sampleOf({ sampled_from: [first, ...others] }: InputPreview): string {
  if (!first) return "";
  return `types from the first rows of ${first}${others.length ? ` and ${others.length} more` : ""}`;
}
