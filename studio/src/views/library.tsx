// What jobs are made of and read: assets of each type with their versions, datastores, batch endpoints. The URL says which.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson, send } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { Asset, AssetPage, BatchEndpointList, DataPreview, Datastore, DatastoreList, Job } from "../api/types";
import { DataTable, type Column } from "../charts/twin";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Copy } from "../parts/copy";
import { asDocument, DocumentDialog } from "../parts/document_dialog";
import { Empty, Shown } from "../parts/notice";
import { ask, go, place } from "../shell/router";
import { moment } from "../words/times";
import { Inputs } from "./draft/inputs";
import { Grid, ROWS } from "./job/table";

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
  action,
}: {
  title: string;
  columns: Column[];
  rows: ComponentChildren[][];
  command: string;
  action?: JSX.Element;
}): JSX.Element {
  return (
    <Card
      title={title}
      aside={
        <>
          {action}
          <Copy text={command} label="Copy the command that lists these">
            CLI
          </Copy>
        </>
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
        <>
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
          {kind === "data" && items[0] && <Rows of={items[0]} />}
        </>
      )}
    </Shown>
  );
}

/** The newest version of data as jobs would read it. */
function Rows({ of: { name, version } }: { of: Asset }): JSX.Element {
  const path = `azureml:${name}:${version}`;
  const loaded = useLoaded(path, () =>
    send<DataPreview>("POST", apiPath("/jobs:preview", { rows: ROWS }), { inputs: { data: { path } } }),
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

function Id({ of }: { of: Asset }): JSX.Element {
  const id = `azureml:${of.name}:${of.version}`;
  return (
    <>
      <code>{id}</code> <Copy text={id} label={`Copy ${id}`} />
    </>
  );
}

const FIRST_DATASTORE = "type: s3\nbucket: our-images\n";

function Datastores(): JSX.Element {
  const loaded = useLoaded("datastores", (signal) => getJson<DatastoreList>(apiPath("/datastores"), signal));
  const [edited, edit] = useState<Datastore | "new" | undefined>(undefined);
  return (
    <>
      <Shown of={loaded}>
        {({ items }) => (
          <Table
            title="Datastores"
            command="parallelrun datastore list"
            action={
              <button type="button" onClick={() => edit("new")}>
                New datastore
              </button>
            }
            columns={[
              { name: "Name" },
              { name: "Type" },
              { name: "Location" },
              { name: "Credentials" },
              { name: "Change" },
            ]}
            rows={items.map((each) => [
              <b>{each.name}</b>,
              each.type,
              <>
                <code>{each.location}</code> <Copy text={each.location} label={`Copy ${each.location}`} />
              </>,
              each.access,
              <button type="button" aria-label={`Edit ${each.name}`} onClick={() => edit(each)}>
                Edit
              </button>,
            ])}
          />
        )}
      </Shown>
      {edited && (
        <DocumentDialog<Datastore>
          title={edited === "new" ? "New datastore" : `Edit ${edited.name}`}
          about="Fields are in docs/storage.md. It has no secret: nodes have credentials, or a file that it names."
          method="PUT"
          path={(name) => apiPath(`/datastores/${encodeURIComponent(name)}`)}
          {...(edited === "new" ? {} : { name: edited.name })}
          document={edited === "new" ? FIRST_DATASTORE : asDocument(edited.definition)}
          button={edited === "new" ? "Create" : "Change"}
          onDone={() => {
            edit(undefined);
            loaded.reload();
          }}
          onClose={() => edit(undefined)}
        />
      )}
    </>
  );
}

function Endpoints(): JSX.Element {
  const loaded = useLoaded("endpoints", (signal) => getJson<BatchEndpointList>(apiPath("/batch-endpoints"), signal));
  const [invoked, invoke] = useState<string | undefined>(undefined);
  return (
    <>
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
              <>
                <button type="button" aria-label={`Invoke ${name}`} onClick={() => invoke(name)}>
                  Invoke
                </button>
                <Copy
                  text={`parallelrun batch-endpoint invoke ${name} --file invocation.yml`}
                  label={`Copy the command that invokes ${name}`}
                >
                  CLI
                </Copy>
              </>,
            ])}
          />
        )}
      </Shown>
      {invoked !== undefined && (
        <DocumentDialog<Job>
          title={`Invoke ${invoked}`}
          about="The data, and settings other than those of the deployment: docs/batch-endpoints.md has the fields."
          method="POST"
          path={(name) => apiPath(`/batch-endpoints/${encodeURIComponent(name)}:invoke`)}
          name={invoked}
          document={"input: /path/to/the/files\n"}
          button="Invoke"
          onDone={({ id }) => go(`/jobs/${id}`)}
          onClose={() => invoke(undefined)}
        />
      )}
    </>
  );
}
