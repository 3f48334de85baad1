// Requests to the API that served the page, and what can be wrong with them.

import { signal } from "@preact/signals";

/** Why a request was refused, in the server's words; status 0: no server answered. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly hints: string[] = [],
  ) {
    super(detail);
  }
}

/** Whether the server wants to know who asks before it says more. */
export const mustSignIn = signal(false);
/** Whether the server answered when it was last asked. */
export const isReachable = signal(true);
/** When it answered last: what is shown is as it was then. */
export const answered = { at: Date.now() };

/** The header without which the server changes nothing: pages of other origins can't send it. */
const OWN = { "X-ParallelRun-Page": "1" };
const MOST_WAITS = 5;

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await request(path, signal ? { signal } : {})).json()) as T;
}

export async function getText(
  path: string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return request(path, signal ? { headers, signal } : { headers });
}

export async function send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { ...OWN, ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
  const answer = await request(path, { method, headers, ...content });
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** Send a document as it was written. */
export async function sendText<T>(
  path: string,
  yaml: string,
  signal?: AbortSignal,
  method: "POST" | "PUT" = "POST",
): Promise<T> {
  const headers = { ...OWN, "Content-Type": "application/yaml" };
  const answer = await request(path, { method, headers, body: yaml, ...(signal ? { signal } : {}) });
  return (await answer.json()) as T;
}

/** Send a document, and a zip of what belongs to it. */
export async function sendForm<T>(method: "POST" | "PUT", path: string, spec: unknown, content: Blob): Promise<T> {
  const form = new FormData();
  form.set("spec", JSON.stringify(spec));
  form.set("content", content, "content.zip");
  return (await (await request(path, { method, headers: OWN, body: form })).json()) as T;
}

async function request(path: string, init: RequestInit): Promise<Response> {
  for (let waits = 0; ; waits++) {
    const answer = await reach(path, init);
    if (answer.ok) return answer;
    if (answer.status === 401) mustSignIn.value = true;
    const after = answer.headers.get("Retry-After"); // a quota that is used up has none
    if (answer.status !== 429 || !after || waits === MOST_WAITS) throw await problemOf(answer);
    await sleep(1000 * Number(after), init.signal);
  }
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    const answer = await fetch(path, init);
    isReachable.value = true;
    answered.at = Date.now();
    return answer;
  } catch (error) {
    if (init.signal?.aborted) throw error;
    isReachable.value = false;
    throw new Problem(0, "unreachable", "The server doesn't answer. The page tries again by itself.");
  }
}

async function problemOf(answer: Response): Promise<Problem> {
  const told = await answer.json().catch(() => ({}));
  const errors: { pointer: string; message: string; hint?: string }[] = told.errors ?? [];
  const isList = errors.length > 1; // one is all of the detail
  return new Problem(
    answer.status,
    told.code ?? "",
    (isList ? told.title : told.detail) ?? `The server answered with ${answer.status}.`,
    isList ? errors.map(({ pointer, message, hint }) => `${pointer}: ${message}${hint ? ` (${hint})` : ""}`) : [],
  );
}

function sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}

/** Some of a list; `next_page_token` is null on its last page. */
export interface Page<Item> {
  items: Item[];
  next_page_token: string | null;
}
