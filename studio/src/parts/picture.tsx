// A picture that a job reads or has made, small; nothing where the browser can't decode it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";

/** As much as the server sends of an input as a picture. */
const MOST_BYTES = 10 * 1024 * 1024;

export const isPicture = (path: string, size = 0): boolean =>
  size <= MOST_BYTES && /\.(png|jpe?g|gif|webp|bmp)$/i.test(path);

export function Picture({ url, name }: { url: string; name: string }): JSX.Element | null {
  const [isBroken, setBroken] = useState(false);
  return isBroken ? null : <img class="picture" src={url} alt={name} loading="lazy" onError={() => setBroken(true)} />;
}
