// A job that is about to be submitted: its document, checked by the server as it is typed; of one that is run again, what is
// changed.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getJson, sendText, type Problem } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath, jobPath } from "../../api/paths";
import type { DataPreview, Job, JobCheck, JobDocument } from "../../api/types";
import { Card } from "../../parts/card";
import { Empty, Loading, Shown, Trouble } from "../../parts/notice";
import { Prose } from "../../parts/prose";
import { go, place } from "../../shell/router";
import { changesBetween } from "./diff";
import { CodeFolder } from "./code_folder";
import { Inputs } from "./inputs";
import { Plan } from "./plan";
import { settingIn, withSetting } from "./settings";

const TYPED_MS = 400;
const EXAMPLE = `name: first-job
entry_script: score.py
code: /path/to/the/folder/of/score.py
inputs: {data: /path/to/the/input/files}
mini_batch_size: 10
`;
/** The settings that are changed most often, each with what it is about. */
const FORM: Record<string, string> = {
  name: "Name",
  mini_batch_size: "Mini-batch size",
  instance_count: "Nodes",
  max_concurrency_per_instance: "Workers on each node",
  mini_batches_in_flight: "Mini-batches at once in a worker",
  run_max_try: "Tries of a mini-batch",
  run_invocation_timeout: "Seconds for a run()",
  error_threshold: "Failed items at most",
};
const FORM_OF_PIPELINE: Record<string, string> = { name: "Name", max_concurrency: "Steps at once" };

export function Draft(): JSX.Element {
  const { query } = place.value;
  const from = query.get("from") ?? "";
  const loaded = useLoaded(`draft ${from}`, async (signal) =>
    from ? getJson<JobDocument>(jobPath(from, "/document"), signal) : { text: EXAMPLE, left_out: [] },
  );
  const takesOver = query.get("resume_from") === "1";
  return (
    <div class="page">
      <h1>{from ? "Run again, with changes" : "New job"}</h1>
      <Shown of={loaded}>
        {({ text, left_out }) => (
          <Editor
            key={from}
            original={from ? text : ""}
            begin={takesOver ? withSetting(text, "resume_from", from) : text}
            from={from}
            leftOut={left_out}
          />
        )}
      </Shown>
    </div>
  );
}

interface EditorProps {
  original: string;
  begin: string;
  from: string;
  leftOut: string[];
}

function Editor({ original, begin, from, leftOut }: EditorProps): JSX.Element {
  const [text, setText] = useState(begin);
  const [refusal, refuse] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const checked = useChecked(text === EXAMPLE ? undefined : text);
  const isPipeline = settingIn(text, "type") === "pipeline";
  const submit = async (): Promise<void> => {
    setBusy(true);
    try {
      go(`/jobs/${(await sendText<Job>(apiPath("/jobs"), text)).id}`);
    } catch (error) {
      refuse(error as Problem);
      setBusy(false);
    }
  };
  const change = (next: string): void => {
    setText(next);
    refuse(undefined);
  };
  return (
    <div class="stack">
      <Card title="Settings">
        <div class="form">
          {Object.entries(isPipeline ? FORM_OF_PIPELINE : FORM).map(([name, title]) => (
            <label key={name} title={name}>
              {title}
              <input
                value={settingIn(text, name)}
                onInput={(event) => change(withSetting(text, name, event.currentTarget.value.trim()))}
              />
            </label>
          ))}
          {from && (
            <label class="tick">
              <input
                type="checkbox"
                checked={settingIn(text, "resume_from") === from}
                onChange={(event) => change(withSetting(text, "resume_from", event.currentTarget.checked ? from : ""))}
              />
              Take over what that job has done (resume_from)
            </label>
          )}
        </div>
      </Card>
      <Card title="Document">
        {leftOut.length > 0 && (
          <p class="hint">
            Left out, since the values are secret: {leftOut.join(", ")}. Write them again if the job needs them.
          </p>
        )}
        <textarea
          class="yaml"
          aria-label="Document of the job, as YAML"
          spellcheck={false}
          rows={16}
          value={text}
          onInput={(event) => change(event.currentTarget.value)}
        />
        {!isPipeline && <CodeFolder onSent={(code) => change(withSetting(text, "code", code))} />}
        {text === EXAMPLE && !refusal ? (
          <p class="hint">Name your script, its folder and its input: the server checks what you write.</p>
        ) : (
          <Verdict of={refusal ? { problem: refusal } : checked} />
        )}
        <div class="actions">
          <button type="button" class="main" disabled={isBusy || !checked?.value} onClick={() => void submit()}>
            {isBusy ? "Submitting …" : "Submit"}
          </button>
        </div>
      </Card>
      {original && <Changes before={original} after={text} />}
      {checked?.value?.type === "parallel" && (
        <>
          <Asked
            key={`plan ${text}`}
            title="Plan"
            button="Count its mini-batches"
            about="How much it is, and about how long it takes."
          >
            <Plan text={text} from={from} />
          </Asked>
          <Asked
            key={`preview ${text}`}
            title="What run() gets"
            button="Read the first rows"
            about="The first rows of its tables, as its workers would read them."
          >
            <FirstRows text={text} />
          </Asked>
        </>
      )}
    </div>
  );
}

interface Checked {
  value?: JobCheck;
  problem?: Problem;
}

/** What the server says of a document, once nobody has typed for a moment; undefined: it is about to be asked. */
function useChecked(text: string | undefined): Checked | undefined {
  const [answer, setAnswer] = useState<(Checked & { of: string }) | undefined>(undefined);
  useEffect(() => {
    if (text === undefined) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      sendText<JobCheck>(apiPath("/jobs:check"), text, abort.signal).then(
        (value) => setAnswer({ of: text, value }),
        (problem: Problem) => abort.signal.aborted || setAnswer({ of: text, problem }),
      );
    }, TYPED_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  return answer?.of === text ? answer : undefined;
}

function Verdict({ of }: { of: Checked | undefined }): JSX.Element {
  if (!of) return <p class="sub">Checking …</p>;
  if (of.problem) return <Trouble problem={of.problem} />;
  return (
    <div role="status">
      <p class="sub">The server would accept this {of.value?.type} job. Its code is checked when it is submitted.</p>
      {of.value?.notes.map((note) => (
        <p key={note} class="sub">
          <Prose text={note} />
        </p>
      ))}
    </div>
  );
}

function Changes({ before, after }: { before: string; after: string }): JSX.Element {
  const changes = changesBetween(before, after).filter(({ kind }) => kind !== "same");
  return (
    <Card title="Changes">
      {changes.length ? (
        <pre class="diff">
          {changes.map(({ kind, line }, index) => (
            <span key={index} class={kind}>
              {kind === "new" ? "+ " : "− "}
              {line}
              {"\n"}
            </span>
          ))}
        </pre>
      ) : (
        <Empty>None: it would be the same job once more.</Empty>
      )}
    </Card>
  );
}

interface AskedProps {
  title: string;
  button: string;
  about: string;
  children: ComponentChildren;
}

/** What the server has to read data for: only when somebody asks for it. */
function Asked({ title, button, about, children }: AskedProps): JSX.Element {
  const [isWanted, want] = useState(false);
  return (
    <Card
      title={title}
      aside={
        !isWanted && (
          <button type="button" class="quiet" onClick={() => want(true)}>
            {button}
          </button>
        )
      }
    >
      {isWanted ? children : <Empty>{about}</Empty>}
    </Card>
  );
}

function FirstRows({ text }: { text: string }): JSX.Element {
  const { value, problem } = useLoaded("preview", (signal) =>
    sendText<DataPreview>(apiPath("/jobs:preview"), text, signal),
  );
  if (problem) return <Trouble problem={problem} />;
  return value ? <Inputs of={value} /> : <Loading />;
}
