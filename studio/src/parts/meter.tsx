// How much of something is in use: in words, and as a bar below them.

import type { JSX } from "preact";

interface Props {
  share: number | null;
  text: string;
  /** The share is of the most that any has, not of a limit: to have all of it is nothing bad. */
  isRelative?: boolean;
}

export function Meter({ share, text, isRelative = false }: Props): JSX.Element {
  return (
    <span class="meter">
      {text}
      {share !== null && (
        <i class={share > 0.9 && !isRelative ? "full" : ""} aria-hidden="true">
          <b style={{ width: `${Math.min(100, share * 100)}%` }} />
        </i>
      )}
    </span>
  );
}
