// Sentences of the server and of the documentation, in which code is between backticks. A command can be copied.

import type { JSX } from "preact";
import { capital } from "../words/sentence";
import { Copy } from "./copy";

/** A sentence, which begins with a capital. */
export function Prose({ text }: { text: string }): JSX.Element {
  return <Coded text={capital(text)} />;
}

/** Whether it can be run as it stands: it lacks no id, and has no word in capitals in place of which one is to be put. */
const isCommand = (code: string): boolean =>
  /^parallelrun(-\w+)? /.test(code) && !/ [A-Z]+\b|^parallelrun job \w+$/.test(code);

/** A part of a sentence. */
export function Coded({ text }: { text: string }): JSX.Element {
  return (
    <>
      {text.split(/`([^`]+)`/).map((part, index) =>
        index % 2 ? (
          <span key={index} class="coded">
            <code>{part}</code>
            {isCommand(part) && <Copy text={part} label={`Copy: ${part}`} />}
          </span>
        ) : (
          part
        ),
      )}
    </>
  );
}
