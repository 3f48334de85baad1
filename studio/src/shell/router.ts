// Where the page is: the URL says all of it, so that whatever is shown can be sent to somebody.

import { signal } from "@preact/signals";

interface Place {
  path: string;
  query: URLSearchParams;
  hash: string;
}

const read = (): Place => ({
  path: location.pathname,
  query: new URLSearchParams(location.search),
  hash: location.hash.slice(1),
});

export const place = signal(read());

export function go(to: string, { replace = false }: { replace?: boolean } = {}): void {
  const before = place.value.path;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  place.value = read();
  if (place.value.path !== before) scrollTo(0, 0);
}

/** The address of this view with parts of its query changed; an empty value takes its part away. */
export function linkWith(changes: Record<string, string | undefined>): string {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return `${place.value.path}${text && "?"}${text}`;
}

/** Change parts of the query; an empty value takes its part away. What a filter is set to need not be gone back to. */
export function ask(changes: Record<string, string | undefined>): void {
  go(linkWith(changes), { replace: true });
}

/** Follow the links of the page without loading it again; the server's own, and those to elsewhere, are left alone. */
export function startRouter(): void {
  addEventListener("popstate", () => (place.value = read()));
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a");
    if (!link || event.defaultPrevented || event.button !== 0 || hasModifier(event)) return;
    if (link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
    if (link.pathname.startsWith("/v1/") || link.getAttribute("href")?.startsWith("#")) return;
    event.preventDefault();
    go(link.pathname + link.search + link.hash);
  });
}

const hasModifier = (event: MouseEvent): boolean => event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
