// How much of something is in use: in words, and as a bar below them.

import type { JSX } from "preact";

export function Meter({ share, text }: { share: number | null; text: string }): JSX.Element {
  return (
    <span class="meter">
      {text}
      {share !== null && (
        <i class={share > 0.9 ? "full" : ""} aria-hidden="true">
          <b style={{ width: `${Math.min(100, share * 100)}%` }} />
        </i>
      )}
    </span>
  );
}
