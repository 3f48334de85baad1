// The people of a cluster that several share: what each has used, what each may use, and their tokens.

import type { JSX } from "preact";
import { isAdmin } from "../../api/session";
import { Quotas } from "./quotas";
import { Tokens } from "./tokens";
import { Usage } from "./usage";

export function People(): JSX.Element {
  return (
    <div class="page stack">
      <h1>People</h1>
      <Usage />
      <Quotas isAdmin={isAdmin()} />
      {isAdmin() && <Tokens />}
    </div>
  );
}
