// What a job was told, as it counts: each setting with where its value came from.

import type { JSX } from "preact";
import { getJson } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { jobPath } from "../../api/paths";
import type { EffectiveSetting } from "../../api/types";
import { Card } from "../../parts/card";
import { Choice } from "../../parts/choice";
import { Copy } from "../../parts/copy";
import { Shown } from "../../parts/notice";
import { Prose } from "../../parts/prose";
import { ask, place } from "../../shell/router";
import type { TabProps } from "./tab_props";

const TITLES: Record<string, string> = {
  job: "Job",
  run: "Run settings",
  parallel: "Parallel",
  inputs: "Inputs",
  outputs: "Outputs",
  limits: "Limits",
  other: "Other",
};
const CHOICES = { "": "all", given: "given ones" };

export function Parameters({ job }: TabProps): JSX.Element {
  const loaded = useLoaded(job.id, (signal) =>
    getJson<{ items: EffectiveSetting[] }>(jobPath(job.id, "/settings"), signal),
  );
  const isNarrow = place.value.query.get("show") === "given";
  return (
    <div class="stack">
      <div class="heading">
        <Choice label="Settings" value={isNarrow ? "given" : ""} options={CHOICES} onChange={(show) => ask({ show })} />
        <div class="actions">
          <Copy text={JSON.stringify(job.spec, null, 2)} label="Copy the job spec as JSON">
            Copy as JSON
          </Copy>
        </div>
      </div>
      <Shown of={loaded}>
        {({ items }) => {
          const groups = Map.groupBy(
            items.filter(({ origin }) => !isNarrow || origin !== "default"),
            ({ group }) => group,
          );
          return [...groups].map(([group, settings]) => (
            <Card key={group} title={TITLES[group] ?? group}>
              <dl class="settings">
                {settings.map((setting) => (
                  <OneSetting key={setting.name} of={setting} />
                ))}
              </dl>
            </Card>
          ));
        }}
      </Shown>
    </div>
  );
}

function OneSetting({ of }: { of: EffectiveSetting }): JSX.Element {
  const isOwn = of.origin !== "default";
  return (
    <div class={isOwn ? "own" : ""}>
      <dt>
        <code>{of.name}</code>
        <span class="sub">
          <Prose text={of.description} />
        </span>
      </dt>
      <dd>
        <Value value={of.value} />
        <span class="sub">
          {of.origin === "given" && (of.given_at ? `given at ${of.given_at}` : "given")}
          {of.origin === "unknown" && "not the default"}
          {of.origin === "default" && "default"}
          {isOwn && JSON.stringify(of.default) !== JSON.stringify(of.value) && ` · default: ${plain(of.default)}`}
        </span>
      </dd>
    </div>
  );
}

function Value({ value }: { value: unknown }): JSX.Element {
  const isLong = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (isLong) return <pre>{JSON.stringify(value, null, 2)}</pre>;
  const text = plain(value);
  return (
    <>
      <code>{text}</code> {text.includes("/") && <Copy text={text} label={`Copy ${text}`} />}
    </>
  );
}

function plain(value: unknown): string {
  if (value === null || value === "") return "–";
  if (typeof value !== "object") return String(value);
  return Object.keys(value).length ? JSON.stringify(value) : "–";
}
