// What jobs are made of and read: assets of each type with their versions, datastores, batch endpoints. The URL says which.

import type { ComponentChildren, JSX } from "preact";
import { getJson } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { Asset, AssetPage, BatchEndpointList, DatastoreList } from "../api/types";
import { DataTable, type Column } from "../charts/twin";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Copy } from "../parts/copy";
import { Empty, Shown } from "../parts/notice";
import { ask, place } from "../shell/router";
import { moment } from "../words/times";

const KINDS = {
  data: "Data",
  model: "Models",
  environment: "Environments",
  component: "Components",
  datastores: "Datastores",
  endpoints: "Batch endpoints",
};

export function Library(): JSX.Element {
  const kind = place.value.query.get("kind") ?? "data";
  return (
    <div class="page stack">
      <h1>Library</h1>
      <Choice label="Kind" value={kind} options={KINDS} onChange={(each) => ask({ kind: each, name: undefined })} />
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

function Table({
  title,
  columns,
  rows,
  command,
}: {
  title: string;
  columns: Column[];
  rows: ComponentChildren[][];
  command: string;
}): JSX.Element {
  return (
    <Card
      title={title}
      aside={
        <Copy text={command} label="Copy the command that lists these">
          CLI
        </Copy>
      }
    >
      {rows.length ? <DataTable caption={title} columns={columns} rows={rows} /> : <Empty>None yet.</Empty>}
    </Card>
  );
}

function Assets({ kind }: { kind: string }): JSX.Element {
  const loaded = useLoaded(kind, (signal) => getJson<AssetPage>(apiPath(`/assets/${kind}`), signal));
  const name = place.value.query.get("name") ?? "";
  return (
    <>
      <Shown of={loaded}>
        {({ items }) => (
          <Table
            title={KINDS[kind as keyof typeof KINDS] ?? kind}
            command={`parallelrun asset list ${kind}`}
            columns={[
              { name: "Name" },
              { name: "Latest version" },
              { name: "Created" },
              { name: "Owner" },
              { name: "About" },
            ]}
            rows={items.map((asset) => [
              <button
                type="button"
                class="quiet"
                aria-pressed={asset.name === name}
                onClick={() => ask({ name: asset.name })}
              >
                {asset.name}
              </button>,
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
        <Table
          title={`Versions of ${name}`}
          command={`parallelrun asset list ${kind} ${name}`}
          columns={[{ name: "Version" }, { name: "Created" }, { name: "What it is" }, { name: "Name for jobs" }]}
          rows={items.map((asset) => [
            asset.version,
            moment(asset.created),
            <code>{contentOf(asset)}</code>,
            <Id of={asset} />,
          ])}
        />
      )}
    </Shown>
  );
}

const contentOf = ({ content }: Asset): string =>
  Object.entries(content)
    .filter(([, value]) => typeof value === "string" || typeof value === "number")
    .map(([key, value]) => `${key}: ${String(value)}`)
    .join(", ");

function Id({ of }: { of: Asset }): JSX.Element {
  const id = `azureml:${of.name}:${of.version}`;
  return (
    <>
      <code>{id}</code> <Copy text={id} label={`Copy ${id}`} />
    </>
  );
}

function Datastores(): JSX.Element {
  const loaded = useLoaded("datastores", (signal) => getJson<DatastoreList>(apiPath("/datastores"), signal));
  return (
    <Shown of={loaded}>
      {({ items }) => (
        <Table
          title="Datastores"
          command="parallelrun datastore list"
          columns={[{ name: "Name" }, { name: "Type" }, { name: "Location" }, { name: "Credentials" }]}
          rows={items.map(({ name, type, location, access }) => [<b>{name}</b>, type, <code>{location}</code>, access])}
        />
      )}
    </Shown>
  );
}

function Endpoints(): JSX.Element {
  const loaded = useLoaded("endpoints", (signal) => getJson<BatchEndpointList>(apiPath("/batch-endpoints"), signal));
  return (
    <Shown of={loaded}>
      {({ items }) => (
        <Table
          title="Batch endpoints"
          command="parallelrun batch-endpoint list"
          columns={[
            { name: "Name" },
            { name: "Deployments" },
            { name: "Default" },
            { name: "Changed" },
            { name: "Jobs" },
            { name: "Invoke" },
          ]}
          rows={items.map(({ name, deployments, default_deployment, modified }) => [
            <b>{name}</b>,
            deployments.join(", ") || "–",
            default_deployment || "–",
            moment(modified),
            <a href={`/jobs?maker=${encodeURIComponent(`endpoint:${name}`)}`}>its jobs</a>,
            <Copy
              text={`parallelrun batch-endpoint invoke ${name} --file invocation.yml`}
              label={`Copy the command that invokes ${name}`}
            >
              CLI
            </Copy>,
          ])}
        />
      )}
    </Shown>
  );
}
