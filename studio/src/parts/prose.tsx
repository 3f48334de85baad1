// Sentences of the server and of the documentation, in which code is between backticks. They begin with a capital.

import type { JSX } from "preact";

export function Prose({ text }: { text: string }): JSX.Element {
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return <>{sentence.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
}
