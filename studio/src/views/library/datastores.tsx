// Datastores: made and changed by their documents, and tried by the nodes, which have the credentials.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useEvery } from "../../api/every";
import { getJson, send, type Page } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { DatastoreList, Node, NodeCheckAsked } from "../../api/types";
import { Card } from "../../parts/card";
import { Copy } from "../../parts/copy";
import { useDefiner } from "../../parts/define";
import { Empty, Shown } from "../../parts/notice";
import { Prose } from "../../parts/prose";
import { Mark } from "../../parts/state";
import { Listing } from "./listing";

const FIRST = "type: s3\nbucket: our-images\n";
const ABOUT = "Fields are in docs/storage.md. It has no secret: nodes have credentials, or a file that it names.";
const CREDENTIALS: Record<string, string> = {
  node: "those of the nodes",
  secret: "in a file that it names",
  anonymous: "none: it is public",
};
const ANSWERED_MS = 1000;

export function Datastores(): JSX.Element {
  const loaded = useLoaded("datastores", (signal) => getJson<DatastoreList>(apiPath("/datastores"), signal));
  const definer = useDefiner({ noun: "datastore", about: ABOUT, first: FIRST, onDone: loaded.reload });
  const [tested, test] = useState("");
  return (
    <>
      <Shown of={loaded}>
        {({ items }) => (
          <Listing
            title="Datastores"
            command="parallelrun datastore list"
            first={{
              about: "A datastore is a name for a place in an object store, so that jobs need neither address nor key.",
              command: "parallelrun datastore create --file datastore.yml",
            }}
            action={definer.create}
            columns={["Name", "Type", "Location", "Credentials", "Change"]}
            rows={items.map((each) => [
              <b>{each.name}</b>,
              each.type,
              <>
                <code>{each.location}</code> <Copy text={each.location} label={`Copy ${each.location}`} />
              </>,
              CREDENTIALS[each.access] ?? each.access,
              <span class="actions">
                {definer.edit(each)}
                <button type="button" aria-label={`Test ${each.name}`} onClick={() => test(each.name)}>
                  Test
                </button>
              </span>,
            ])}
          />
        )}
      </Shown>
      {tested && <Test key={tested} name={tested} />}
      {definer.dialog}
    </>
  );
}

function Test({ name }: { name: string }): JSX.Element {
  const paths = [`azureml://datastores/${name}/paths/`];
  const asked = useLoaded(name, () => send<NodeCheckAsked>("POST", apiPath("/nodes:check"), { paths }));
  return (
    <Card title={`Test of ${name}`}>
      <Shown of={asked}>{({ id }) => <Answers id={id} />}</Shown>
    </Card>
  );
}

/** What each node says of it with its next heartbeat. */
function Answers({ id }: { id: string }): JSX.Element {
  const round = useEvery(ANSWERED_MS);
  const nodes = useLoaded(id, (signal) => getJson<Page<Node>>(apiPath("/nodes"), signal), round);
  return (
    <Shown of={nodes}>
      {({ items }) =>
        items.length ? (
          <ul class="evidence">
            {items.map(({ node, check }) => (
              <li key={node}>
                <b>{node}</b>{" "}
                {check?.id === id
                  ? check.findings
                      .filter(({ what }) => what.startsWith("input: "))
                      .map(({ level, what, todo }) => (
                        <>
                          <Mark state={level === "ok" ? "completed" : "failed"} />{" "}
                          <Prose text={what.replace(/^input: \S+\/paths\/:? /, "")} />
                          {todo && <span class="sub"> {todo}</span>}
                        </>
                      ))
                  : "is asked …"}
              </li>
            ))}
          </ul>
        ) : (
          <Empty>There is no node that could try it.</Empty>
        )
      }
    </Shown>
  );
}
