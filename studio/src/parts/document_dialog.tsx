// A dialog with a document, as YAML or JSON, that is sent as it is written: what defines a thing, or is given to it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sendText } from "../api/http";
import { Question } from "./question";

interface Props<Answer> {
  title: string;
  about: string;
  method: "POST" | "PUT";
  /** Where it is sent; for a thing that gets its name here, with that. */
  path: (name: string) => string;
  /** The name of what is there already; undefined: it is asked for. */
  name?: string;
  document: string;
  button: string;
  onDone: (answer: Answer) => void;
  onClose: () => void;
}

export function DocumentDialog<Answer>(props: Props<Answer>): JSX.Element {
  const { title, about, method, path, button, onDone, onClose } = props;
  const [name, setName] = useState(props.name ?? "");
  const [text, setText] = useState(props.document);
  const act = (): Promise<void> => sendText<Answer>(path(name.trim()), text, undefined, method).then(onDone);
  return (
    <Question title={title} button={button} isDisabled={!name.trim()} act={act} onClose={onClose}>
      <p>{about}</p>
      {props.name === undefined && (
        <label class="pick">
          Name
          <input type="text" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
      )}
      <textarea
        class="yaml"
        aria-label={`Document: ${title}`}
        spellcheck={false}
        rows={10}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </Question>
  );
}

export const asDocument = (definition: Record<string, unknown>): string => JSON.stringify(definition, null, 2);
