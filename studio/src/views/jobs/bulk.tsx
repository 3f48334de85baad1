// What can be done with all jobs that are chosen. It asks first, and says of each job for which it was refused why.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Problem, send } from "../../api/http";
import { jobPath } from "../../api/paths";
import { Question } from "../../parts/question";
import { counted } from "../../words/numbers";
import { changeOf } from "./tags";

type Verb = "cancel" | "retry" | "tag" | "archive" | "delete";

const VERBS: Record<Verb, { title: string; question: string; isGrave?: boolean }> = {
  cancel: {
    title: "Cancel",
    isGrave: true,
    question: "What is running is stopped. What is done is kept; a resume goes on from there.",
  },
  retry: {
    title: "Retry failed",
    question: "Failed mini-batches are run again, with the code as it was. What is done is kept.",
  },
  tag: {
    title: "Tag",
    question: "Tags are set, and with a minus removed. Other tags stay.",
  },
  archive: {
    title: "Archive",
    question: "They are hidden from lists. Nothing of them is removed; they can be restored.",
  },
  delete: {
    title: "Delete",
    isGrave: true,
    question:
      "Their outputs, results and reports are removed for good. One that runs, or that something refers to, stays.",
  },
};

interface Props {
  chosen: string[];
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
  const { title, question, isGrave } = VERBS[verb];
  const body = verb === "tag" ? changeOf(tags) : undefined;
  const act = async (): Promise<void> => {
    const refused: Record<string, string> = {};
    for (const id of chosen)
      await (verb === "delete" ? send("DELETE", jobPath(id)) : send("POST", `${jobPath(id)}:${verb}`, body)).catch(
        (problem: Problem) => (refused[id] = problem.message),
      );
    onDone(verb === "delete" ? chosen.filter((id) => !refused[id]) : []);
    const lines = Object.entries(refused).map(([id, why]) => `\`${id}\` ${why}`);
    if (lines.length) throw new Problem(0, "", `${counted(lines.length, "job")} refused:`, lines);
  };
  return (
    <Question
      title={`${title}: ${counted(chosen.length, "job")}?`}
      button={title}
      isGrave={isGrave}
      isDisabled={body && !tags.trim()}
      act={act}
      onClose={onClose}
    >
      <p>{question}</p>
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
