// A part of a page with a heading, and perhaps something to do at its right.

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface Props {
  title: string;
  aside?: ComponentChildren;
  kind?: string;
  children: ComponentChildren;
}

export function Card({ title, aside, kind = "", children }: Props): JSX.Element {
  const id = useId();
  return (
    <section class={`card ${kind}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside && <div class="aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}
