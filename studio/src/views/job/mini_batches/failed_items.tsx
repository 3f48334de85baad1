// The items of a job that have failed for good, each with the reason: to be read, copied, or downloaded.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { isOver } from "../../../api/live";
import { useLoaded } from "../../../api/loaded";
import { loadPages } from "../../../api/pages";
import { filePath, jobPath } from "../../../api/paths";
import type { FailedItem, FailedItemPage, Job } from "../../../api/types";
import { DataTable } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { Copy } from "../../../parts/copy";
import { Shown } from "../../../parts/notice";
import { causeOf } from "../../../words/errors";
import { count } from "../../../words/numbers";
import { linkToMiniBatch } from "../links";

const PAGE = 25;

export function FailedItems({ job }: { job: Job }): JSX.Element | null {
  const hasFailed = job.progress.items_failed > job.progress.items_short;
  return isOver(job) && hasFailed ? <Listed job={job} /> : null;
}

function Listed({ job }: { job: Job }): JSX.Element | null {
  const path = (page_token = ""): string => jobPath(job.id, "/failed-items", { limit: PAGE, page_token });
  const [pages, setPages] = useState(1);
  const load = (signal: AbortSignal): Promise<FailedItemPage> => loadPages(path, pages, signal);
  const listed = useLoaded(path(), load, job.state, String(pages));
  if (listed.value?.items.length === 0) return null;
  const names = listed.value?.items.map((each) => each.item) ?? [];
  return (
    <Card
      title="Failed items"
      aside={
        <>
          <Copy text={names.join("\n")} label="Copy the names that are shown">
            Copy
          </Copy>
          <a class="button" href={filePath(job.id, "logs", "failed_items.csv")} download>
            Download all
          </a>
        </>
      }
    >
      <Shown of={listed}>
        {({ items, total, next_page_token }) => (
          <>
            <p class="sub">
              {count(items.length)} of {count(total)}
            </p>
            <Table job={job.id} items={items} />
            {next_page_token && (
              <p class="more">
                <button type="button" onClick={() => setPages(pages + 1)}>
                  Show more
                </button>
              </p>
            )}
          </>
        )}
      </Shown>
    </Card>
  );
}

function Table({ job, items }: { job: string; items: FailedItem[] }): JSX.Element {
  return (
    <DataTable
      caption="Failed items"
      name="failed-items"
      columns={[
        { name: "Item", isHead: true },
        { name: "Mini-batch", isNumber: true },
        { name: "Error" },
        { name: "Place" },
      ]}
      rows={items.map((each) => [
        <>
          <code>{each.item}</code> <Copy text={each.item} label={`Copy ${each.item}`} />
        </>,
        <a href={linkToMiniBatch(job, each.mini_batch)}>{count(each.mini_batch)}</a>,
        <span class="message sub">
          {causeOf(each.category)} <code>{each.message}</code>
        </span>,
        each.place,
      ])}
    />
  );
}
