// One log: its end, which grows while the job runs, or what is around a line that a link names.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useEvery } from "../../../api/every";
import type { Problem } from "../../../api/http";
import { isOver } from "../../../api/live";
import { NOTHING, openPart, readBack, readOn, type LogPart } from "../../../api/log_part";
import { filePath } from "../../../api/paths";
import type { Job } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Copy } from "../../../parts/copy";
import { Icon } from "../../../parts/icon";
import { Empty, Loading, Trouble } from "../../../parts/notice";
import { ask } from "../../../shell/router";
import { bytes, percent } from "../../../words/numbers";
import { linkToLog } from "../links";

const EVERY_MS = 1000;

interface Props {
  job: Job;
  path: string;
  isEmpty: boolean;
  /** The byte at which the line begins that is to be shown; undefined: the end. */
  at: number | undefined;
}

export function LogView({ job, path, isEmpty, at }: Props): JSX.Element {
  const [part, setPart] = useState<LogPart | undefined>(undefined);
  const [problem, tell] = useState<Problem | undefined>(undefined);
  const [follows, follow] = useState(at === undefined);
  const box = useRef<HTMLDivElement>(null);
  const abort = useRef(new AbortController());
  const round = useEvery(EVERY_MS);

  const load = (what: (signal: AbortSignal) => Promise<LogPart>): Promise<void> =>
    what(abort.current.signal).then(
      (value) => {
        setPart(value);
        tell(undefined);
      },
      (error: Problem) => {
        if (!abort.current.signal.aborted) tell(error);
      },
    );
  useEffect(() => {
    if (at !== undefined) follow(false);
    if (part?.lines.some(({ offset }) => offset === at)) return;
    void load((signal) => (isEmpty ? Promise.resolve(NOTHING) : openPart(job.id, path, at, signal)));
  }, [at]);
  useEffect(() => () => abort.current.abort(), []);
  useEffect(() => {
    if (part && follows && !isOver(job)) void load((signal) => readOn(job.id, path, part, signal));
  }, [round]);
  useLayoutEffect(() => {
    const own = box.current;
    if (!own || !part) return;
    if (follows) own.scrollTop = own.scrollHeight;
  }, [part, follows]);
  useLayoutEffect(() => {
    const [own, named] = [box.current, box.current?.querySelector<HTMLElement>(".named")];
    if (!own || !named || follows || isInSight(named, own)) return;
    own.scrollTop = named.offsetTop - own.offsetTop - own.clientHeight / 2;
  }, [part, at, follows]);

  const scrolled = (): void => {
    const own = box.current!;
    const isAtEnd = own.scrollHeight - own.scrollTop - own.clientHeight < 30;
    if (follows && !isAtEnd) follow(false);
  };
  const press = (event: KeyboardEvent): void => {
    const by = { j: 1, k: -1 }[event.key];
    const lines = part?.lines ?? [];
    if (by === undefined || !lines.length) return;
    const now = lines.findIndex(({ offset }) => offset === at);
    const next = now < 0 ? (by > 0 ? 0 : lines.length - 1) : now + by;
    name(lines[Math.max(0, Math.min(lines.length - 1, next))]!.offset);
    event.preventDefault();
    event.stopPropagation();
  };
  const earlier = async (): Promise<void> => {
    const before = box.current!.scrollHeight;
    await load((signal) => readBack(job.id, path, part!, signal));
    box.current!.scrollTop += box.current!.scrollHeight - before;
  };

  return (
    <Card
      title={path}
      kind="log"
      aside={<Tools job={job} path={path} part={part} at={at} follows={follows} follow={follow} />}
    >
      {problem && <Trouble problem={problem} />}
      {!part && !problem && <Loading />}
      {part && (
        <div
          class="log-lines"
          ref={box}
          tabIndex={0}
          role="region"
          aria-label={`Lines of ${path}. j and k choose one.`}
          onScroll={scrolled}
          onKeyDown={press}
        >
          {part.begin > 0 && (
            <button type="button" class="quiet" onClick={() => void earlier()}>
              Show earlier lines
            </button>
          )}
          {part.lines.length ? <Lines part={part} at={at} /> : <Empty>It is empty.</Empty>}
          {part.end < part.size && (
            <button
              type="button"
              class="quiet"
              onClick={() => void load((signal) => readOn(job.id, path, part, signal))}
            >
              Show later lines
            </button>
          )}
        </div>
      )}
    </Card>
  );
}

interface ToolsProps {
  job: Job;
  path: string;
  part: LogPart | undefined;
  at: number | undefined;
  follows: boolean;
  follow: (isOn: boolean) => void;
}

function Tools({ job, path, part, at, follows, follow }: ToolsProps): JSX.Element {
  return (
    <>
      {part && (
        <span class="sub" title="The lines of logs have the time in UTC, whatever the page shows">
          times in UTC · {bytes(part.size)}
          {part.begin > 0 && `, the last ${percent((part.end - part.begin) / part.size)}`}
        </span>
      )}
      {!isOver(job) && (
        <button type="button" class="quiet" aria-pressed={follows} onClick={() => follow(!follows)}>
          {follows ? "Following" : "Follow"}
        </button>
      )}
      {at !== undefined && (
        <Copy text={location.origin + linkToLog(job.id, path, at)} label="Copy a link to the chosen line">
          Link to the line
        </Copy>
      )}
      <a
        class="button bare"
        href={filePath(job.id, "logs", path)}
        download
        aria-label="Download this log"
        title="Download this log"
      >
        <Icon name="down" />
      </a>
      <Copy text={`parallelrun job logs ${job.id} ${path}`} label="Copy the command that shows this log" />
    </>
  );
}

const name = (offset: number): void => ask({ at: String(offset) });

function isInSight(line: HTMLElement, within: HTMLElement): boolean {
  const top = line.offsetTop - within.offsetTop;
  return top >= within.scrollTop && top + line.offsetHeight <= within.scrollTop + within.clientHeight;
}

/** The line that is chosen is in the address, which can be sent to somebody. */
function Lines({ part, at }: { part: LogPart; at: number | undefined }): JSX.Element {
  return (
    <ol>
      {part.lines.map(({ offset, text }) => (
        <li
          key={offset}
          class={offset === at ? "named" : ""}
          aria-current={offset === at ? "true" : undefined}
          onClick={() => name(offset)}
        >
          <code>{text}</code>
        </li>
      ))}
    </ol>
  );
}
