// The computes of the cluster: pools of like nodes, which engines start and stop.

import type { JSX } from "preact";
import { getJson } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { Compute } from "../api/types";
import { DataTable } from "../charts/twin";
import { Card } from "../parts/card";
import { useDefiner, type Definer } from "../parts/define";
import { Empty } from "../parts/notice";
import { Coded } from "../parts/prose";
import { count } from "../words/numbers";
import { moment } from "../words/times";

const FIRST = "type: local\nmin_instances: 0\nmax_instances: 4\nslots: 1\n";
const ABOUT =
  "Fields are in docs/computes.md. The provisioner sees it within seconds, and asks its engine again at once.";

export function Computes({ revision }: { revision: number }): JSX.Element | null {
  const { value, reload } = useLoaded(
    "computes",
    (signal) => getJson<{ items: Compute[] }>(apiPath("/computes"), signal),
    revision,
  );
  const definer = useDefiner({ noun: "compute", about: ABOUT, first: FIRST, onDone: reload });
  if (!value) return null;
  return (
    <Card title="Computes" aside={definer.create}>
      {value.items.length ? (
        <Table computes={value.items} edit={definer.edit} />
      ) : (
        <Empty>None yet. A compute is a pool of like nodes that an engine starts and stops as jobs need them.</Empty>
      )}
      {definer.dialog}
    </Card>
  );
}

function Table({ computes, edit }: { computes: Compute[]; edit: Definer["edit"] }): JSX.Element {
  const hasCost = computes.some((each) => each.cost_per_hour > 0);
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
        ...(hasCost ? [{ name: "Cost of an hour", isNumber: true }] : []),
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
        ...(hasCost ? [each.cost_per_hour.toFixed(2)] : []),
        <Said of={each} />,
        edit(each),
      ])}
    />
  );
}

function Said({ of: { name, type, is_default, status } }: { of: Compute }): JSX.Element {
  return (
    <>
      {is_default && <span class="chip">runs jobs that name none</span>}
      {!status && type === "manual" && (
        <span class="sub">
          People start its nodes: <Coded text={`\`parallelrun-agent --compute ${name}\``} />
        </span>
      )}
      {status?.why && (
        <span class="bad">
          <Coded text={status.why} />
        </span>
      )}
      {status && status.failures > 0 && (
        <span class="sub">
          {count(status.failures)} launches in a row have failed
          {status.next_attempt && `; asked again ${moment(status.next_attempt)}`}
        </span>
      )}
    </>
  );
}
