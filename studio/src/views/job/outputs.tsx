// What a job has made: its files, to be downloaded, or looked into first.

import type { JSX } from "preact";
import { getJson } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { filePath, jobPath } from "../../api/paths";
import type { FileList, Job } from "../../api/types";
import { Card } from "../../parts/card";
import { Copy } from "../../parts/copy";
import { Icon } from "../../parts/icon";
import { Empty, Shown } from "../../parts/notice";
import { isPicture, Picture } from "../../parts/picture";
import { Prose } from "../../parts/prose";
import { ask, place } from "../../shell/router";
import { bytes } from "../../words/numbers";
import { moment } from "../../words/times";
import { Table } from "./table";
import type { TabProps } from "./tab_props";

const MOST = 500;

export function Outputs({ job, live }: TabProps): JSX.Element {
  const files = useLoaded(
    `${job.id} ${job.state}`,
    (signal) => getJson<FileList>(jobPath(job.id, "/outputs"), signal),
    live.revision.value,
  );
  return (
    <div class="stack">
      {job.output && <WholeOutput job={job} output={job.output} />}
      <Card
        title="Files"
        aside={
          <Copy text={`parallelrun job download ${job.id}`} label="Copy the command that downloads all">
            CLI
          </Copy>
        }
      >
        <Shown of={files}>{(page) => <Files job={job} page={page} />}</Shown>
      </Card>
    </div>
  );
}

const COPIED = ["Path", "SHA-256"];

function WholeOutput({ job, output }: { job: Job; output: NonNullable<Job["output"]> }): JSX.Element {
  const facts: [string, string][] = [
    ["Path", output.path],
    ["Size", bytes(output.bytes)],
    ["Order of rows", output.order === "sorted" ? "that of the items" : output.order],
    ["SHA-256", output.sha256],
  ];
  return (
    <Card title="The file with all rows">
      <dl class="pairs left">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code>{value}</code> {COPIED.includes(name) && <Copy text={value} label={`Copy: ${name}`} />}
            </dd>
          </div>
        ))}
      </dl>
      {job.warnings.map((warning) => (
        <p key={warning} class="hint apart">
          <Prose text={warning} />
        </p>
      ))}
    </Card>
  );
}

function Files({ job, page }: { job: Job; page: FileList }): JSX.Element {
  const shown = place.value.query.get("path");
  if (!page.items.length && !page.elsewhere.length) return <Empty>There are no outputs yet.</Empty>;
  return (
    <>
      <ul class="outputs">
        {page.items.slice(0, MOST).map(({ path, bytes: size, modified }) => (
          <li key={path}>
            <div class="entry">
              <button
                type="button"
                class="row quiet"
                aria-expanded={path === shown}
                onClick={() => ask({ path: path === shown ? undefined : path })}
              >
                <Icon name="right" />
                <code>{path}</code>
              </button>
              <span class="sub">{bytes(size)}</span>
              <span class="sub moment">{moment(modified)}</span>
              <Copy text={path} label={`Copy ${path}`} />
              <a class="button bare" href={filePath(job.id, "outputs", path)} download aria-label={`Download ${path}`}>
                <Icon name="down" />
              </a>
            </div>
            {path === shown &&
              (isPicture(path, size) ? (
                <Picture url={filePath(job.id, "outputs", path)} name={path} />
              ) : size ? (
                <Table job={job} path={path} size={size} />
              ) : (
                <Empty>It is empty.</Empty>
              ))}
          </li>
        ))}
        {page.elsewhere.map(({ output, url }) => (
          <li key={url}>
            <div class="entry">
              <code>{url}</code>
              <span class="sub">{output ? `output ${output}` : "all rows"}, in an object store</span>
              <Copy text={url} label="Copy the URL" />
            </div>
          </li>
        ))}
      </ul>
      {(page.next_page_token !== null || page.items.length > MOST) && (
        <p class="sub">There are more: the command line lists and downloads all.</p>
      )}
    </>
  );
}
