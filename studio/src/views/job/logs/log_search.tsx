// A search in all logs of a job, on the server. The text is in the URL.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getJson, type Problem } from "../../../api/http";
import { jobPath } from "../../../api/paths";
import type { Job, LogLines } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Icon } from "../../../parts/icon";
import { Trouble } from "../../../parts/notice";
import { ask, place } from "../../../shell/router";
import { bytes, counted } from "../../../words/numbers";
import { linkToLog } from "../links";

const NONE: LogLines = { items: [], searched_bytes: 0, next_page_token: "" };

export function LogSearch({ job }: { job: Job }): JSX.Element {
  const text = place.value.query.get("find") ?? "";
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    ask({ find: (new FormData(event.currentTarget as HTMLFormElement).get("find") as string).trim() });
  };
  return (
    <Card title="Search">
      <form class="search" role="search" onSubmit={submit}>
        <Icon name="search" />
        <input type="search" name="find" aria-label="Search in all logs" placeholder="in all logs" value={text} />
      </form>
      {text && <Results key={text} job={job} text={text} />}
    </Card>
  );
}

function Results({ job, text }: { job: Job; text: string }): JSX.Element {
  const [hits, setHits] = useState<LogLines>(NONE);
  const [problem, tell] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const search = async (before: LogLines): Promise<void> => {
    setBusy(true);
    try {
      const path = jobPath(job.id, "/log-lines", { text, any_case: "true", page_token: before.next_page_token ?? "" });
      const next = await getJson<LogLines>(path);
      setHits({
        ...next,
        items: [...before.items, ...next.items],
        searched_bytes: before.searched_bytes + next.searched_bytes,
      });
    } catch (error) {
      tell(error as Problem);
    }
    setBusy(false);
  };
  useEffect(() => void search(NONE), []);
  if (problem) return <Trouble problem={problem} />;
  return (
    <div class="hits">
      <p class="sub" role="status">
        {isBusy ? "Searching …" : `${counted(hits.items.length, "line")} in ${bytes(hits.searched_bytes)}`}
      </p>
      <ul>
        {hits.items.map((hit) => (
          <li key={`${hit.path} ${hit.offset}`}>
            <a class="row" href={`${linkToLog(job.id, hit.path, hit.offset)}&find=${encodeURIComponent(text)}`}>
              {hit.path.split("/").slice(-2).join("/")}:{hit.line}
            </a>
            <code>{hit.text}</code>
          </li>
        ))}
      </ul>
      {hits.next_page_token && !isBusy && (
        <button type="button" class="quiet" onClick={() => void search(hits)}>
          Search on
        </button>
      )}
    </div>
  );
}
