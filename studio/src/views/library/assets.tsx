// Assets of one type, the versions of one of them, which jobs use each, and the first rows or names of data.

import type { JSX } from "preact";
import { getJson, send } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { Asset, AssetPage, DataPreview } from "../../api/types";
import { Card } from "../../parts/card";
import { Copy } from "../../parts/copy";
import { Shown } from "../../parts/notice";
import { place } from "../../shell/router";
import { moment } from "../../words/times";
import { Inputs } from "../draft/inputs";
import { written } from "../jobs/tags";
import { Grid, ROWS } from "../job/table";
import { Chosen, Listing } from "./listing";

interface AssetType {
  title: string;
  /** What those see who have none. */
  about: string;
}

export const ASSET_TYPES: Record<string, AssetType> = {
  data: {
    title: "Data",
    about: "Data is a folder, a file or a table under a name, in versions that never change.",
  },
  model: {
    title: "Models",
    about: "A model is a file or a folder under a name, in versions: jobs take it as an input, or make one.",
  },
  environment: {
    title: "Environments",
    about: "An environment is the Python that scripts run with, under a name, in versions.",
  },
  component: { title: "Components", about: "A component is a step that several pipelines use." },
};

/** A type that has no text here is shown by its name. */
export function Assets({ kind }: { kind: string }): JSX.Element {
  const { title, about } = ASSET_TYPES[kind] ?? { title: kind, about: "" };
  const loaded = useLoaded(kind, (signal) => getJson<AssetPage>(apiPath(`/assets/${kind}`), signal));
  const name = place.value.query.get("name") ?? "";
  return (
    <>
      <Shown of={loaded}>
        {({ items }) => (
          <Listing
            title={title}
            command={`parallelrun ${kind} list`}
            first={{ about, command: `parallelrun ${kind} create --file ${kind}.yml` }}
            columns={["Name", "Latest version", "Created", "Owner", "About"]}
            rows={items.map((asset) => [
              <Chosen name={asset.name} />,
              asset.version,
              moment(asset.created),
              asset.owner || "–",
              asset.description || "–",
            ])}
          />
        )}
      </Shown>
      {name && <Versions key={name} kind={kind} name={name} />}
    </>
  );
}

function Versions({ kind, name }: { kind: string; name: string }): JSX.Element {
  const path = `/assets/${kind}/${encodeURIComponent(name)}/versions`;
  const loaded = useLoaded(path, (signal) => getJson<AssetPage>(apiPath(path), signal));
  return (
    <Shown of={loaded}>
      {({ items }) => (
        <>
          <Listing
            title={`Versions of ${name}`}
            command={`parallelrun ${kind} list --name ${name}`}
            columns={["Version", "Created", "What it is", "About", "Name for jobs", "Used by"]}
            rows={items.map((asset) => [
              asset.version,
              moment(asset.created),
              <>
                <code>{contentOf(asset)}</code>{" "}
                {typeof asset.content["path"] === "string" && (
                  <Copy text={asset.content["path"]} label={`Copy the path of version ${asset.version}`} />
                )}
              </>,
              <>
                {asset.description || (Object.keys(asset.tags).length ? "" : "–")}{" "}
                {written(asset.tags).map((tag) => (
                  <span key={tag} class="chip">
                    {tag}
                  </span>
                ))}
              </>,
              <>
                <code>{asset.id}</code> <Copy text={asset.id} label={`Copy ${asset.id}`} />
              </>,
              <a href={`/jobs?asset=${encodeURIComponent(asset.id)}`}>jobs that use it</a>,
            ])}
          />
          {kind === "data" && items[0] && <Rows of={items[0]} />}
        </>
      )}
    </Shown>
  );
}

/** The newest version of data as jobs would read it. */
function Rows({ of: { id, version } }: { of: Asset }): JSX.Element {
  const loaded = useLoaded(id, () =>
    send<DataPreview>("POST", apiPath("/jobs:preview", { rows: ROWS }), { inputs: { data: { path: id } } }),
  );
  return (
    <Card title={`Preview of version ${version}`}>
      <Shown of={loaded}>
        {({ items: [data] }) =>
          data?.columns.length ? <Grid of={data} /> : <Inputs of={{ items: data ? [data] : [] }} />
        }
      </Shown>
    </Card>
  );
}

const contentOf = ({ content }: Asset): string =>
  Object.entries(content)
    .filter(([, value]) => typeof value === "string" || typeof value === "number")
    .map(([key, value]) => `${key}: ${String(value)}`)
    .join(", ");
