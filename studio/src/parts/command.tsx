// A command to be run in a terminal, with a button that copies it.

import type { JSX } from "preact";
import { Copy } from "./copy";

export function Command({ text }: { text: string }): JSX.Element {
  return (
    <p class="command">
      <code>{text}</code>
      <Copy text={text} label={`Copy: ${text}`} />
    </p>
  );
}
