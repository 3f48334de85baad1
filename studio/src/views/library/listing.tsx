// The tables of the library: each a card with the command that lists the same.

import type { ComponentChildren, JSX } from "preact";
import { DataTable, type Column } from "../../charts/twin";
import { Card } from "../../parts/card";
import { Command } from "../../parts/command";
import { Copy } from "../../parts/copy";
import { Empty } from "../../parts/notice";
import { linkWith, place } from "../../shell/router";

interface Props {
  title: string;
  /** Names of its columns. */
  columns: string[];
  rows: ComponentChildren[][];
  command: string;
  /** For those who have none yet: what one is, and the command that makes the first. */
  first?: { about: string; command: string };
  action?: JSX.Element;
}

export function Listing({ title, columns, rows, command, first, action }: Props): JSX.Element {
  return (
    <Card
      title={title}
      aside={
        <>
          {action}
          <Copy text={command} label="Copy the command that lists these">
            CLI
          </Copy>
        </>
      }
    >
      {rows.length ? (
        <DataTable caption={title} columns={columns.map((name): Column => ({ name }))} rows={rows} />
      ) : (
        <>
          <Empty>None yet. {first?.about}</Empty>
          {first && <Command text={first.command} />}
        </>
      )}
    </Card>
  );
}

/** The name of one of them, which shows more of it below. */
export function Chosen({ name }: { name: string }): JSX.Element {
  const isChosen = place.value.query.get("name") === name;
  return (
    <a class="row" href={linkWith({ name: isChosen ? "" : name })} aria-current={isChosen ? "true" : undefined}>
      {name}
    </a>
  );
}
