// Batch endpoints, the deployments of one of them, and their invocation.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { BatchDeployment, BatchDeploymentList, BatchEndpointList, Job } from "../../api/types";
import { Copy } from "../../parts/copy";
import { DocumentDialog } from "../../parts/document_dialog";
import { Shown } from "../../parts/notice";
import { go, place } from "../../shell/router";
import { moment } from "../../words/times";
import { Chosen, Listing } from "./listing";

const ABOUT = "The data, and settings other than those of the deployment: docs/batch-endpoints.md has the fields.";
const DATA = "input: /path/to/the/files\n";

const pathOf = (endpoint: string, rest: string): string =>
  apiPath(`/batch-endpoints/${encodeURIComponent(endpoint)}${rest}`);

export function Endpoints(): JSX.Element {
  const loaded = useLoaded("endpoints", (signal) => getJson<BatchEndpointList>(apiPath("/batch-endpoints"), signal));
  const name = place.value.query.get("name");
  return (
    <Shown of={loaded}>
      {({ items }) => (
        <>
          <Listing
            title="Batch endpoints"
            command="parallelrun batch-endpoint list"
            first={{
              about: "A batch endpoint is a job under a name, which whoever invokes it gives the data.",
              command: "parallelrun batch-endpoint create --file endpoint.yml",
            }}
            columns={["Name", "Deployments", "Default", "Changed", "Jobs", "Invoke"]}
            rows={items.map(({ name, deployments, default_deployment, modified }) => [
              <Chosen name={name} />,
              deployments.join(", ") || "–",
              default_deployment || "–",
              moment(modified),
              <a href={`/jobs?maker=${encodeURIComponent(`endpoint:${name}`)}`}>its jobs</a>,
              <>
                <Invoke endpoint={name} />
                <Copy
                  text={`parallelrun batch-endpoint invoke ${name} --input /path/to/the/files`}
                  label={`Copy the command that invokes ${name}`}
                >
                  CLI
                </Copy>
              </>,
            ])}
          />
          {items
            .filter((each) => each.name === name)
            .map((each) => (
              <Deployments key={each.name} endpoint={each.name} preset={each.default_deployment} />
            ))}
        </>
      )}
    </Shown>
  );
}

function Deployments({ endpoint, preset }: { endpoint: string; preset: string }): JSX.Element {
  const path = pathOf(endpoint, "/deployments");
  const loaded = useLoaded(path, (signal) => getJson<BatchDeploymentList>(path, signal));
  return (
    <Shown of={loaded}>
      {({ items }) => (
        <Listing
          title={`Deployments of ${endpoint}`}
          command={`parallelrun batch-deployment list --endpoint-name ${endpoint}`}
          first={{
            about: "A deployment says which job is made of the data that the endpoint is given.",
            command: `parallelrun batch-deployment create --endpoint-name ${endpoint} --file deployment.yml`,
          }}
          columns={["Name", "Type", "Inputs", "Changed", "About", "Invoke"]}
          rows={items.map((each) => [
            <>
              <b>{each.name}</b> {each.name === preset && <span class="chip">default</span>}
            </>,
            each.type,
            inputsOf(each),
            moment(each.modified),
            each.description || "–",
            <Invoke endpoint={endpoint} deployment={each.name} />,
          ])}
        />
      )}
    </Shown>
  );
}

const inputsOf = ({ inputs }: BatchDeployment): string =>
  Object.entries(inputs)
    .map(([name, { type }]) => `${name}: ${type}`)
    .join(", ") || "any data";

function Invoke({ endpoint, deployment }: { endpoint: string; deployment?: string }): JSX.Element {
  const [isOpen, open] = useState(false);
  const name = deployment ? `${deployment} of ${endpoint}` : endpoint;
  return (
    <>
      <button type="button" aria-label={`Invoke ${name}`} onClick={() => open(true)}>
        Invoke
      </button>
      {isOpen && (
        <DocumentDialog<Job>
          title={`Invoke ${name}`}
          about={ABOUT}
          method="POST"
          path={() => pathOf(endpoint, ":invoke")}
          name={endpoint}
          document={deployment ? `deployment_name: ${deployment}\n${DATA}` : DATA}
          button="Invoke"
          onDone={({ id }) => go(`/jobs/${id}`)}
          onClose={() => open(false)}
        />
      )}
    </>
  );
}
