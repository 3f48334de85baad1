// A state: a shape, a colour and a word. The shapes differ, so nobody needs the colours.

import type { JSX } from "preact";
import { kindOf, worded, type Kind } from "../words/states";

const SHAPES: Record<Kind, JSX.Element> = {
  waiting: <circle cx="8" cy="8" r="5.500" class="open dashed" />,
  running: <path d="M8 2.500a5.500 5.500 0 1 0 5.500 5.500" class="open turning" />,
  done: (
    <>
      <circle cx="8" cy="8" r="6.500" />
      <path d="M5 8.300l2.100 2.100 4-4.600" class="inner" />
    </>
  ),
  failed: (
    <>
      <path d="M5.300 1.500h5.400l3.800 3.800v5.400l-3.800 3.800H5.300l-3.800-3.800V5.300z" />
      <path d="M5.700 5.700l4.600 4.600m0-4.600l-4.600 4.600" class="inner" />
    </>
  ),
  stopped: (
    <>
      <rect x="2" y="2" width="12" height="12" rx="2" />
      <path d="M5 8h6" class="inner" />
    </>
  ),
};

interface Props {
  state: string;
  /** If the word means something else here than elsewhere. */
  kind?: Kind;
}

export function Mark({ state, kind = kindOf(state) }: Props): JSX.Element {
  return (
    <svg class={`mark ${kind}`} viewBox="0 0 16 16" aria-hidden="true">
      {SHAPES[kind]}
    </svg>
  );
}

export function State({ state, kind = kindOf(state) }: Props): JSX.Element {
  return (
    <span class={`state ${kind}`}>
      <Mark state={state} kind={kind} />
      {worded(state)}
    </span>
  );
}
