// The tokens that this server has made: made for somebody, and revoked, by an admin.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson, send } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { NewToken, Token, TokenList } from "../../api/types";
import { DataTable } from "../../charts/twin";
import { Card } from "../../parts/card";
import { Copy } from "../../parts/copy";
import { Empty, Shown } from "../../parts/notice";
import { Question } from "../../parts/question";
import { moment } from "../../words/times";

const SCOPES: Record<string, string> = {
  submit: "submit: also changes what is their own",
  read: "read: sees",
  admin: "admin: changes everybody's",
};
const pathOf = (name: string): string => apiPath(`/tokens/${encodeURIComponent(name)}`);

export function Tokens(): JSX.Element {
  const tokens = useLoaded("tokens", (signal) => getJson<TokenList>(apiPath("/tokens"), signal));
  const [isMaking, make] = useState(false);
  const [revoked, revoke] = useState("");
  const [made, show] = useState<NewToken | undefined>(undefined);
  const done = (token?: NewToken): void => {
    show(token);
    tokens.reload();
  };
  return (
    <Card
      title="Tokens"
      aside={
        <button type="button" onClick={() => make(true)}>
          New token
        </button>
      }
    >
      {made && (
        <p role="status">
          The token of {made.name}, which is shown this once: <code>{made.token}</code>{" "}
          <Copy text={made.token} label={`Copy the token of ${made.name}`} />
        </p>
      )}
      <Shown of={tokens}>
        {({ items }) => (items.length ? <Table of={items} revoke={revoke} /> : <Empty>None yet.</Empty>)}
      </Shown>
      {isMaking && <NewDialog onDone={done} onClose={() => make(false)} />}
      {revoked && (
        <Question
          title={`Revoke the token of ${revoked}?`}
          button="Revoke"
          isGrave
          act={() => send("DELETE", pathOf(revoked)).then(() => done())}
          onClose={() => revoke("")}
        >
          <p>It lets nobody in any more, and browsers that have signed in with it are signed out. Its jobs stay.</p>
        </Question>
      )}
    </Card>
  );
}

function Table({ of, revoke }: { of: Token[]; revoke: (name: string) => void }): JSX.Element {
  return (
    <DataTable
      caption="Tokens"
      columns={["Name", "Scopes", "Made", "Ends", "Change"].map((name) => ({ name }))}
      rows={of.map((token) => [
        <b>{token.name}</b>,
        token.scopes.join(", "),
        `${moment(token.created)}${token.created_by && ` by ${token.created_by}`}`,
        token.expires ? `${token.is_valid ? "" : "has ended "}${moment(token.expires)}` : "when it is revoked",
        <button type="button" aria-label={`Revoke the token of ${token.name}`} onClick={() => revoke(token.name)}>
          Revoke
        </button>,
      ])}
    />
  );
}

function NewDialog({ onDone, onClose }: { onDone: (token: NewToken) => void; onClose: () => void }): JSX.Element {
  const [name, setName] = useState("");
  const [scope, setScope] = useState("submit");
  const [days, setDays] = useState("");
  const act = (): Promise<void> =>
    send<NewToken>("PUT", pathOf(name.trim()), { scopes: [scope], days: Number(days) }).then(onDone);
  return (
    <Question title="New token" button="Make" isDisabled={!name.trim()} act={act} onClose={onClose}>
      <label class="pick">
        Name
        <input type="text" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label class="pick">
        Scope
        <select value={scope} onChange={(event) => setScope(event.currentTarget.value)}>
          {Object.entries(SCOPES).map(([each, text]) => (
            <option key={each} value={each}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <label class="pick">
        Days; empty: until it is revoked
        <input type="number" min={0} value={days} onInput={(event) => setDays(event.currentTarget.value)} />
      </label>
    </Question>
  );
}
