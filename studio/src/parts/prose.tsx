// Sentences of the documentation, in which code is between backticks.

import type { JSX } from "preact";

export function Prose({ text }: { text: string }): JSX.Element {
  return <>{text.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
}
