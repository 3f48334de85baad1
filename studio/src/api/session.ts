// Who is signed in. The token itself is sent once, and kept nowhere: the server answers with a cookie that no script reads.

import { effect, signal } from "@preact/signals";
import { getJson, mustSignIn, send } from "./http";
import type { Problem } from "./http";
import type { Session } from "./types";

const PATH = "/v1/session";
/** How often to ask though nothing has told that the session has ended: whatever else is asked for is refused then. */
const SELDOM_MS = 60_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Whether the page was opened by a link that signs nobody in any more. */
export const isLinkUsed = signal(false);
/** Why the link of this page has signed nobody in, in the server's words; empty: it has, or there was none. */
export const linkTrouble = signal("");
export const session = signal<Session | undefined>(undefined);

const may = (scope: Session["scopes"][number]): boolean => session.value?.scopes.includes(scope) ?? true;
export const isAdmin = (): boolean => may("admin");

/** Whether this browser may change what belongs to somebody; the server decides in any case. */
export const mayChange = (owner: string): boolean =>
  isAdmin() || (may("submit") && owner === session.value?.token_name);

/** Ask whether this browser is signed in. One whose session has ended is told so: who it was is remembered for that. */
export async function refreshSession(): Promise<void> {
  const answer = await getJson<Session>(PATH).catch(() => undefined);
  if (!answer) return;
  mustSignIn.value = answer.is_token_needed && !answer.is_signed_in;
  if (!mustSignIn.value || !session.value) session.value = answer;
}

/** Raises Problem: the token is not valid. */
export const signIn = (token: string): Promise<void> => show({ token });

/** Sign in with the code of a link, if the address has one; it works in one browser, and is taken out of the address. */
export async function signInByLink(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    await show({ code }).catch((problem: Problem) => {
      isLinkUsed.value = problem.status === 401;
      linkTrouble.value = problem.message;
    });
  }
  await refreshSession();
}

async function show(what: { token: string } | { code: string }): Promise<void> {
  session.value = await send<Session>("POST", PATH, what);
  mustSignIn.value = false;
  tellTabs();
}

export async function signOut(): Promise<void> {
  await send("DELETE", PATH).catch(() => undefined);
  tellTabs();
  location.assign("/");
}

/**
 * Say as soon as the session has ended: by its own time, by a sign-out in another tab, or when the page is seen again.
 * The event stream of a job tells of any other end, and so does each request that is refused.
 */
export function followSession(): () => void {
  const ask = (): void => {
    if (!document.hidden && session.value?.is_token_needed) void refreshSession();
  };
  const tabs = new BroadcastChannel(PATH);
  tabs.onmessage = ask;
  document.addEventListener("visibilitychange", ask);
  const seldom = setInterval(ask, SELDOM_MS);
  let atEnd: ReturnType<typeof setTimeout> | undefined;
  const stop = effect(() => {
    clearTimeout(atEnd);
    const ends = session.value?.ends;
    if (ends) atEnd = setTimeout(ask, Math.min(LONGEST_TIMER_MS, Math.max(1000, Date.parse(ends) - Date.now())));
  });
  return () => {
    stop();
    tabs.close();
    document.removeEventListener("visibilitychange", ask);
    clearInterval(seldom);
    clearTimeout(atEnd);
  };
}

/** A channel tells all other tabs of this browser, and none of another one. */
function tellTabs(): void {
  const tabs = new BroadcastChannel(PATH);
  tabs.postMessage("");
  tabs.close();
}
