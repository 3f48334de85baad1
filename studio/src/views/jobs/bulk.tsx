// What can be done with all jobs that are chosen. It asks first, names them, and says of each for which it can't be done,
// or was refused, why.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Problem, send } from "../../api/http";
import { jobPath } from "../../api/paths";
import { Question } from "../../parts/question";
import type { JobSummary } from "../../api/types";
import { Mark } from "../../parts/state";
import { count, counted } from "../../words/numbers";
import { standingOf } from "../../words/pace";
import { titleOf } from "../../words/title";
import { obstacleOf, VERBS, type Verb } from "./bulk_verbs";
import { changeOf } from "./tags";

const NAMED = 10;

interface Props {
  chosen: JobSummary[];
  /** Called with the jobs that are there no more. */
  onDone: (gone: string[]) => void;
}

export function Bulk({ chosen, onDone }: Props): JSX.Element {
  const [asked, ask] = useState<Verb | undefined>(undefined);
  return (
    <>
      {Object.entries(VERBS).map(([verb, { title }]) => (
        <button key={verb} type="button" onClick={() => ask(verb as Verb)}>
          {title}
        </button>
      ))}
      {asked && <Confirm verb={asked} chosen={chosen} onDone={onDone} onClose={() => ask(undefined)} />}
    </>
  );
}

function Confirm({ verb, chosen, onDone, onClose }: Props & { verb: Verb; onClose: () => void }): JSX.Element {
  const [tags, setTags] = useState("");
  const { title, question, isGrave, effect } = VERBS[verb];
  const body = verb === "tag" ? changeOf(tags) : undefined;
  // As it is when the dialog is opened: what is done to them meanwhile is no reason against it.
  const [obstacles] = useState(() => new Map(chosen.map((job) => [job.id, obstacleOf(verb, job)])));
  const [jobs, others] = [chosen.filter(({ id }) => !obstacles.get(id)), chosen.filter(({ id }) => obstacles.get(id))];
  const act = async (): Promise<void> => {
    const refused: Record<string, string> = {};
    for (const { id } of jobs)
      await (verb === "delete" ? send("DELETE", jobPath(id)) : send("POST", `${jobPath(id)}:${verb}`, body)).catch(
        (problem: Problem) => (refused[id] = problem.message),
      );
    onDone(verb === "delete" ? jobs.flatMap(({ id }) => (refused[id] ? [] : [id])) : []);
    const lines = jobs.flatMap((job) => (refused[job.id] ? [`\`${titleOf(job)}\`: ${refused[job.id]}`] : []));
    if (lines.length) throw new Problem(0, "", `${counted(lines.length, "job")} refused:`, lines);
  };
  const number = others.length && jobs.length ? `${count(jobs.length)} of ${counted(chosen.length, "job")}` : "";
  return (
    <Question
      title={`${title}: ${number || counted(chosen.length, "job")}?`}
      button={title}
      isGrave={isGrave}
      isDisabled={!jobs.length || (body && !tags.trim())}
      act={act}
      onClose={onClose}
    >
      <p>{question}</p>
      <Named jobs={jobs} label={title} told={effect} />
      {others.length > 0 && (
        <>
          <p>
            <b>{jobs.length ? `Not ${counted(others.length, "other")}:` : "It can be done to none of them:"}</b>
          </p>
          <Named jobs={others} label="Left as they are" told={({ id }) => obstacles.get(id)!} />
        </>
      )}
      {body && (
        <label class="pick">
          Tags
          <input
            type="text"
            placeholder="team=vision checked -draft"
            value={tags}
            onInput={(event) => setTags(event.currentTarget.value)}
          />
        </label>
      )}
    </Question>
  );
}

interface NamedProps {
  jobs: JobSummary[];
  label: string;
  told: (job: JobSummary) => string;
}

function Named({ jobs, label, told }: NamedProps): JSX.Element | false {
  return (
    jobs.length > 0 && (
      <ul class="named" aria-label={label}>
        {jobs.slice(0, NAMED).map((job) => (
          <li key={job.id} title={job.id}>
            <Mark state={standingOf(job)} />
            <b>{titleOf(job)}</b> <span class="sub">{told(job)}</span>
          </li>
        ))}
        {jobs.length > NAMED && <li class="sub">and {count(jobs.length - NAMED)} more</li>}
      </ul>
    )
  );
}
