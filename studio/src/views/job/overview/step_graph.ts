// Where the steps of a pipeline are in its graph: each one column to the right of all that it needs.

import type { PipelineStep } from "../../../api/types";

export const WIDTH = 240;
const HEIGHT = 96;
/** Of a line of text in a box, and of what is around the text. */
const LINE = 17;
const AROUND = 52;
/** Letters of the narrowest line: words are not cut where they need not be. */
const LETTERS = 28;
const ACROSS = 60;
const DOWN = 18;

export interface PlacedStep {
  step: PipelineStep;
  x: number;
  y: number;
}

export interface Graph {
  places: PlacedStep[];
  edges: [PlacedStep, PlacedStep][];
  width: number;
  height: number;
  /** Of each box: as high as the longest reason needs. */
  boxHeight: number;
}

export function graphOf(steps: PipelineStep[], textOf: (step: PipelineStep) => string): Graph {
  const lines = Math.ceil(Math.max(0, ...steps.map((step) => textOf(step).length)) / LETTERS);
  const boxHeight = Math.max(HEIGHT, AROUND + lines * LINE);
  const places = new Map<string, PlacedStep>();
  const columns: number[] = [];
  // They come in an order in which they can run, so what a step needs has its place already.
  const depths = new Map<string, number>();
  for (const step of steps) {
    const depth = Math.max(0, ...step.needs.map((name) => (depths.get(name) ?? 0) + 1));
    const row = columns[depth] ?? 0;
    columns[depth] = row + 1;
    depths.set(step.name, depth);
    places.set(step.name, { step, x: depth * (WIDTH + ACROSS), y: row * (boxHeight + DOWN) });
  }
  const all = [...places.values()];
  return {
    places: all,
    edges: all.flatMap((to) =>
      to.step.needs.flatMap((name) => (places.has(name) ? [[places.get(name)!, to] as [PlacedStep, PlacedStep]] : [])),
    ),
    width: columns.length * (WIDTH + ACROSS) - ACROSS,
    height: Math.max(1, ...columns) * (boxHeight + DOWN) - DOWN,
    boxHeight,
  };
}

export function curveBetween(from: PlacedStep, to: PlacedStep, height: number): string {
  const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + height / 2, to.x, to.y + height / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2 - 2} ${y2}`;
}
