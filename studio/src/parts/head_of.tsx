// The first lines of a file, asked for when somebody wants to see them.

import type { JSX } from "preact";
import { getText } from "../api/http";
import { useLoaded } from "../api/loaded";
import { bytes } from "../words/numbers";
import { Empty, Shown } from "./notice";

const SHOWN = 16 * 1024;

/** Of a part of a file, which the server cuts, the size isn't known. */
export function HeadOf({ path, size }: { path: string; size?: number }): JSX.Element {
  const loaded = useLoaded(path, async (signal) => {
    if (size === 0) return "";
    return (await getText(path, { Range: `bytes=0-${SHOWN - 1}` }, signal)).text();
  });
  return (
    <Shown of={loaded}>
      {(text) => {
        if (!text) return <Empty>It is empty.</Empty>;
        if (text.includes("\0")) return <Empty>It is not text.</Empty>;
        return (
          <>
            <pre tabIndex={0} role="region" aria-label="Beginning of the file">
              {text}
            </pre>
            {(size ?? new Blob([text]).size + 1) > SHOWN && <p class="sub">The first {bytes(SHOWN)}.</p>}
          </>
        );
      }}
    </Shown>
  );
}
