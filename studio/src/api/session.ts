// Who is signed in. The token itself is sent once, and kept nowhere: the server answers with a cookie that no script reads.

import { signal } from "@preact/signals";
import { getJson, mustSignIn, send } from "./http";

export interface Session {
  is_signed_in: boolean;
  token_name: string;
  is_token_needed: boolean;
}

const PATH = "/v1/session";

export const session = signal<Session | undefined>(undefined);

export async function refreshSession(): Promise<void> {
  session.value = await getJson<Session>(PATH).catch(() => undefined);
  if (session.value?.is_token_needed && !session.value.is_signed_in) mustSignIn.value = true;
}

/** Raises Problem: the token is not valid. */
export async function signIn(token: string): Promise<void> {
  session.value = await send<Session>("POST", PATH, { token });
  mustSignIn.value = false;
}

export async function signOut(): Promise<void> {
  await send("DELETE", PATH).catch(() => undefined);
  location.assign("/");
}
