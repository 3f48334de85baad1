// Sentences of the server and of the documentation, in which code is between backticks. They begin with a capital.

import type { JSX } from "preact";
import { capital } from "../words/sentence";

export function Prose({ text }: { text: string }): JSX.Element {
  return (
    <>
      {capital(text)
        .split("`")
        .map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}
    </>
  );
}
