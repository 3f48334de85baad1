// What each person may use at most. An admin sets it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson, send } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { Quota, QuotaList, UsageOfWeek } from "../../api/types";
import { DataTable } from "../../charts/twin";
import { Card } from "../../parts/card";
import { Empty, Shown } from "../../parts/notice";
import { Question } from "../../parts/question";
import { bytes, count } from "../../words/numbers";
import { loadUsage } from "./usage";

const EVERYBODY = "everybody";
type Limit = Exclude<keyof Quota, "name">;
const LIMITS: Record<Limit, string> = {
  jobs: "Jobs that have not ended",
  submissions_per_minute: "Submissions in a minute",
  slots: "Slots at a time",
  nodes: "Nodes at a time",
  job_bytes: "Bytes of ended jobs",
};
const NAMES = Object.keys(LIMITS) as Limit[];

/** `name` is undefined where it is asked for. */
interface Edited {
  name?: string;
  quota?: Quota | undefined;
}

export function Quotas({ isAdmin }: { isAdmin: boolean }): JSX.Element {
  const quotas = useLoaded("quotas", (signal) => getJson<QuotaList>(apiPath("/quotas"), signal));
  const usage = useLoaded("usage", loadUsage);
  const [edited, edit] = useState<Edited | undefined>(undefined);
  return (
    <Card
      title="Quotas"
      aside={
        isAdmin && (
          <button type="button" onClick={() => edit({})}>
            New quota
          </button>
        )
      }
    >
      <Shown of={quotas}>
        {({ items }) => <Table quotas={items} usage={usage.value?.items ?? []} edit={isAdmin ? edit : undefined} />}
      </Shown>
      {edited && <EditDialog of={edited} onDone={quotas.reload} onClose={() => edit(undefined)} />}
    </Card>
  );
}

interface TableProps {
  quotas: Quota[];
  usage: UsageOfWeek[];
  edit: ((what: Edited) => void) | undefined;
}

/** A row for everybody, and one for each person who has a quota or has used anything. */
function Table({ quotas, usage, edit }: TableProps): JSX.Element {
  const byName = new Map(quotas.map((quota) => [quota.name, quota]));
  const sizes = new Map(
    usage.filter(({ job_bytes: size }) => size !== null).map((each) => [each.owner, each.job_bytes!]),
  );
  const people = new Set([...byName.keys(), ...usage.map(({ owner }) => owner)]);
  people.delete("");
  people.delete(EVERYBODY);
  const names = [...(byName.has(EVERYBODY) ? [EVERYBODY] : []), ...[...people].sort()];
  if (!names.length) return <Empty>Nobody has a quota.</Empty>;
  const cell = (limit: Limit, name: string): string => {
    const most = (byName.get(name) ?? byName.get(EVERYBODY))?.[limit] ?? null;
    if (limit !== "job_bytes") return most === null ? "–" : count(most);
    const size = sizes.get(name);
    return (
      [size === undefined ? "" : bytes(size), most === null ? "" : bytes(most)].filter(Boolean).join(" of ") || "–"
    );
  };
  return (
    <DataTable
      caption="Quotas"
      columns={[
        { name: "Person" },
        ...NAMES.map((limit) => ({ name: LIMITS[limit], isNumber: true })),
        { name: "Quota" },
      ]}
      rows={names.map((name) => [
        <b>{name}</b>,
        ...NAMES.map((limit) => cell(limit, name)),
        <>
          {byName.has(name) ? "" : <span class="sub">{byName.has(EVERYBODY) ? "that of everybody " : "none "}</span>}
          {edit && (
            <button
              type="button"
              aria-label={`Change the quota of ${name}`}
              onClick={() => edit({ name, quota: byName.get(name) })}
            >
              Change
            </button>
          )}
        </>,
      ])}
    />
  );
}

interface DialogProps {
  of: Edited;
  onDone: () => void;
  onClose: () => void;
}

function EditDialog({ of, onDone, onClose }: DialogProps): JSX.Element {
  const [name, setName] = useState(of.name ?? "");
  const [texts, setTexts] = useState<Partial<Record<Limit, string>>>(
    Object.fromEntries(NAMES.map((limit) => [limit, String(of.quota?.[limit] ?? "")])),
  );
  const path = apiPath(`/quotas/${encodeURIComponent(name.trim())}`);
  const limits = Object.fromEntries(NAMES.map((limit) => [limit, texts[limit] ? Number(texts[limit]) : null]));
  const isNothing = NAMES.every((limit) => !texts[limit]);
  const act = (): Promise<void> =>
    (of.quota && isNothing ? send("DELETE", path) : send("PUT", path, limits)).then(onDone);
  return (
    <Question
      title={of.name ? `Quota of ${of.name}` : "New quota"}
      button={of.quota && isNothing ? "Remove" : "Set"}
      isDisabled={!name.trim() || (isNothing && !of.quota)}
      act={act}
      onClose={onClose}
    >
      <p>
        An empty field is no limit. <code>{EVERYBODY}</code> is for those who have no quota of their own. Jobs that run
        keep what they have until the end of their mini-batches.
      </p>
      {of.name === undefined && (
        <label class="pick">
          Person
          <input type="text" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
      )}
      {NAMES.map((limit) => (
        <label class="pick" key={limit}>
          {LIMITS[limit]}
          <input
            type="number"
            min={0}
            value={texts[limit]}
            onInput={(event) => setTexts({ ...texts, [limit]: event.currentTarget.value })}
          />
        </label>
      ))}
    </Question>
  );
}
