// What jobs are made of and read: assets of each type with their versions, datastores, batch endpoints. The URL says which.

import type { JSX } from "preact";
import { Choice } from "../../parts/choice";
import { ask, place } from "../../shell/router";
import { ASSET_TYPES, Assets } from "./assets";
import { Datastores } from "./datastores";
import { Endpoints } from "./endpoints";

const KINDS: Record<string, string> = {
  ...Object.fromEntries(Object.entries(ASSET_TYPES).map(([kind, { title }]) => [kind, title])),
  datastores: "Datastores",
  endpoints: "Batch endpoints",
};

export function Library(): JSX.Element {
  const kind = place.value.query.get("kind") ?? "data";
  const choose = (each: string): void => ask({ kind: each, name: "" });
  return (
    <div class="page stack">
      <h1>Library</h1>
      <Choice label="Kind" value={kind} options={KINDS} onChange={choose} />
      {kind === "datastores" ? (
        <Datastores />
      ) : kind === "endpoints" ? (
        <Endpoints />
      ) : (
        <Assets key={kind} kind={kind} />
      )}
    </div>
  );
}
