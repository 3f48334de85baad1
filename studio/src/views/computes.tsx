// The computes of the cluster: pools of like nodes, which engines start and stop.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { Compute } from "../api/types";
import { DataTable } from "../charts/twin";
import { Card } from "../parts/card";
import { asDocument, DocumentDialog } from "../parts/document_dialog";
import { Empty } from "../parts/notice";
import { count } from "../words/numbers";
import { moment } from "../words/times";

const FIRST = "type: local\nmin_instances: 0\nmax_instances: 4\nslots: 1\n";
const ABOUT =
  "Fields are in docs/computes.md. The provisioner sees it within seconds, and asks its engine again at once.";

const pathOf = (name: string): string => apiPath(`/computes/${encodeURIComponent(name)}`);

export function Computes({ revision }: { revision: number }): JSX.Element | null {
  const { value, reload } = useLoaded(
    "computes",
    (signal) => getJson<{ items: Compute[] }>(apiPath("/computes"), signal),
    revision,
  );
  const [edited, edit] = useState<Compute | "new" | undefined>(undefined);
  if (!value) return null;
  const done = (): void => {
    edit(undefined);
    reload();
  };
  return (
    <Card
      title="Computes"
      aside={
        <button type="button" onClick={() => edit("new")}>
          New compute
        </button>
      }
    >
      {value.items.length ? (
        <Table computes={value.items} edit={edit} />
      ) : (
        <Empty>None yet. A compute is a pool of like nodes that an engine starts and stops as jobs need them.</Empty>
      )}
      {edited && (
        <DocumentDialog<Compute>
          title={edited === "new" ? "New compute" : `Edit ${edited.name}`}
          about={ABOUT}
          method="PUT"
          path={pathOf}
          {...(edited === "new" ? {} : { name: edited.name })}
          document={edited === "new" ? FIRST : asDocument(edited.definition)}
          button={edited === "new" ? "Create" : "Change"}
          onDone={done}
          onClose={() => edit(undefined)}
        />
      )}
    </Card>
  );
}

function Table({ computes, edit }: { computes: Compute[]; edit: (compute: Compute) => void }): JSX.Element {
  return (
    <DataTable
      caption="Computes"
      columns={[
        { name: "Name" },
        { name: "Kind" },
        { name: "Fewest nodes", isNumber: true },
        { name: "Most nodes", isNumber: true },
        { name: "Ready", isNumber: true },
        { name: "Wanted", isNumber: true },
        { name: "Launching", isNumber: true },
        { name: "Leaving", isNumber: true },
        { name: "What its engine says" },
        { name: "Change" },
      ]}
      rows={computes.map((each) => [
        <b>{each.name}</b>,
        each.type,
        each.min_instances,
        each.max_instances,
        each.status?.ready ?? "–",
        each.status?.wanted ?? "–",
        each.status?.launching ?? "–",
        each.status?.leaving ?? "–",
        <Said of={each} />,
        <button type="button" aria-label={`Edit ${each.name}`} onClick={() => edit(each)}>
          Edit
        </button>,
      ])}
    />
  );
}

function Said({ of: { is_default, status } }: { of: Compute }): JSX.Element {
  return (
    <>
      {is_default && <span class="chip">runs jobs that name none</span>}
      {status?.why && <span class="bad">{status.why}</span>}
      {status && status.failures > 0 && (
        <span class="sub">
          {count(status.failures)} launches in a row have failed
          {status.next_attempt && `; asked again ${moment(status.next_attempt)}`}
        </span>
      )}
    </>
  );
}
