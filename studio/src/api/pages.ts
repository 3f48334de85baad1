// Long lists, of which the first pages are shown.

import { getJson, type Page } from "./http";

/** The first `pages` pages of a list as one; `path` gives the path of the page with this token. */
export async function loadPages<Listed extends Page<unknown>>(
  path: (pageToken: string) => string,
  pages: number,
  signal: AbortSignal,
): Promise<Listed> {
  let all = await getJson<Listed>(path(""), signal);
  for (let number = 1; number < pages && all.next_page_token !== null; number++) {
    const next = await getJson<Listed>(path(all.next_page_token), signal);
    all = { ...next, items: [...all.items, ...next.items] };
  }
  return all;
}
