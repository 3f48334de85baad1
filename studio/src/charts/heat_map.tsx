// Mini-batches as a map of squares: each is one of them, or some neighbors. What failed also has another shape.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Tiles } from "../api/types";
import { count, counted } from "../words/numbers";
import { duration } from "../words/times";
import { useCanvas } from "./canvas";
import type { Colors } from "./colors";
import { boxOf, cellAt, GAP, gridOf, type Grid } from "./heat_grid";

export type Shade = "state" | "time";

interface Props {
  tiles: Tiles;
  /** Of its place, in pixels. */
  width: number;
  shade: Shade;
  /** Look closer at a cell, or at its one mini-batch. */
  onOpen: (first: number, end: number) => void;
  /** What a mini-batch is called that is not decided and doesn't run. */
  undecided: string;
  onBack: () => void;
}

export function HeatMap({ tiles, width, shade, undecided, onOpen, onBack }: Props): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<number | undefined>(undefined);
  const grid = gridOf(tiles.completed.length, width);
  const shown = at === undefined ? undefined : Math.min(at, grid.cells - 1);
  useCanvas(
    canvas,
    grid.columns * grid.pitch,
    grid.height,
    (context, colors) => drawCells(context, colors, grid, tiles, shade, shown),
    [tiles, shade, shown, grid.pitch],
  );

  const cellOf = (event: MouseEvent): number | undefined => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    return cellAt(grid, event.clientX - left, event.clientY - top);
  };
  const open = (cell: number | undefined): void => {
    if (cell !== undefined) onOpen(...boundsOf(tiles, cell));
  };
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.columns, ArrowDown: grid.columns }[event.key];
    if (by !== undefined) setAt(Math.max(0, Math.min(grid.cells - 1, (shown ?? -by) + by)));
    else if (event.key === "Enter" || event.key === "+") open(shown);
    else if (event.key === "-" || event.key === "0" || event.key === "Backspace") onBack();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="heat-map">
      <div
        tabIndex={0}
        role="group"
        aria-label={`${counted(grid.cells, "square")} of ${sizeOf(tiles)}. Arrows move, Enter looks closer, minus goes back.`}
        onKeyDown={press}
        onBlur={() => setAt(undefined)}
      >
        <canvas
          ref={canvas}
          onPointerMove={(event) => setAt(cellOf(event))}
          onPointerLeave={() => setAt(undefined)}
          onClick={(event) => open(cellOf(event))}
        />
      </div>
      <p class="readout" aria-live="polite">
        {shown === undefined ? `A square is ${sizeOf(tiles)}.` : told(tiles, shown, undecided)}
      </p>
    </div>
  );
}

const sizeOf = ({ bucket_size }: Tiles): string =>
  bucket_size === 1 ? "one mini-batch" : `${count(bucket_size)} mini-batches`;

/** The first mini-batch of a cell, and the one after its last. */
export const boundsOf = (tiles: Tiles, cell: number): [number, number] => {
  const first = tiles.first + cell * tiles.bucket_size;
  return [first, Math.min(tiles.end, first + tiles.bucket_size)];
};

export const nameOf = (tiles: Tiles, cell: number): string => {
  const [first, end] = boundsOf(tiles, cell);
  return end - first === 1 ? `Mini-batch ${count(first)}` : `Mini-batches ${count(first)} – ${count(end - 1)}`;
};

function told(tiles: Tiles, cell: number, undecided: string): string {
  const parts = [
    [tiles.completed[cell]!, "done"],
    [tiles.failed[cell]!, "failed"],
    [tiles.running[cell]!, "running"],
    [tiles.waiting[cell]!, undecided],
    [tiles.retried[cell]!, "tried more than once"],
  ].filter(([value]) => value);
  const isOne = tiles.bucket_size === 1;
  const states = parts.map(([value, word]) => (isOne ? word : `${count(value as number)} ${word}`)).join(", ");
  const median = tiles.median_run_s[cell];
  const time =
    median == null
      ? ""
      : isOne
        ? ` · ran ${duration(median)}`
        : ` · median ${duration(median)}, at most ${duration(tiles.max_run_s[cell]!)}`;
  return `${nameOf(tiles, cell)}: ${states}${time}`;
}

/** Smaller squares are many, and to clip each of them takes longer than all else of a click. */
const LEAST_ROUND = 12;

function drawCells(
  context: CanvasRenderingContext2D,
  colors: Colors,
  grid: Grid,
  tiles: Tiles,
  shade: Shade,
  shown: number | undefined,
): void {
  const scale = shade === "time" ? timeScale(tiles) : undefined;
  const hasBars = !scale && grid.pitch - GAP < LEAST_ROUND;
  if (hasBars) drawBars(context, colors, grid, tiles);
  const crosses = { whole: new Path2D(), part: new Path2D() };
  for (let cell = 0; cell < grid.cells; cell++) {
    if (hasBars && onlyState(tiles, cell)) continue;
    const { x, y, size } = boxOf(grid, cell);
    const isRound = size >= LEAST_ROUND;
    if (isRound) {
      context.save();
      context.beginPath();
      context.roundRect(x, y, size, size, Math.min(3, size / 4));
      context.clip();
    }
    if (scale) drawTime(context, colors, scale(tiles.median_run_s[cell] ?? null), x, y, size);
    else drawState(context, colors, tiles, cell, x, y, size, crosses);
    if (isRound) context.restore();
  }
  // All at once: hundreds of lines by themselves take longer than the squares.
  context.lineWidth = 1.5;
  context.strokeStyle = colors.surface;
  context.stroke(crosses.whole);
  context.strokeStyle = colors.text;
  context.stroke(crosses.part);
  if (shown !== undefined) {
    const { x, y, size } = boxOf(grid, shown);
    context.strokeStyle = colors.text;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, size - 2, size - 2);
  }
}

/** The one color of a cell, if it has one and no mark. */
function onlyState(tiles: Tiles, cell: number): "done" | "waiting" | undefined {
  if (tiles.failed[cell] || tiles.running[cell]) return undefined;
  if (!tiles.completed[cell]) return "waiting";
  const [first, end] = boundsOf(tiles, cell);
  return tiles.completed[cell] === end - first ? "done" : undefined;
}

/** Neighbors of one color in a row as one bar, from which the gaps are cut: most squares are like that, and to paint each
 * by itself takes longer than all else of a click. */
export function drawBars(
  context: Pick<CanvasRenderingContext2D, "fillStyle" | "fillRect" | "clearRect">,
  colors: Colors,
  grid: Grid,
  tiles: Tiles,
): void {
  for (let cell = 0, end = 1; cell < grid.cells; cell = end++) {
    const state = onlyState(tiles, cell);
    if (!state) continue;
    while (end < grid.cells && end % grid.columns && onlyState(tiles, end) === state) end++;
    const { x, y, size } = boxOf(grid, cell);
    context.fillStyle = colors[state];
    context.fillRect(x, y, (end - cell) * grid.pitch - GAP, size);
  }
  for (let column = 1; column < grid.columns; column++)
    context.clearRect(column * grid.pitch - GAP, 0, GAP, grid.height);
}

/** The shares of a cell from the bottom up. A few that failed among many must still be seen. */
function drawState(
  context: CanvasRenderingContext2D,
  colors: Colors,
  tiles: Tiles,
  cell: number,
  x: number,
  y: number,
  size: number,
  crosses: { whole: Path2D; part: Path2D },
): void {
  const [first, end] = boundsOf(tiles, cell);
  const share = (value: number, least: number): number => (value ? Math.max(least, (size * value) / (end - first)) : 0);
  const failed = share(tiles.failed[cell]!, Math.min(size, 4));
  const done = share(tiles.completed[cell]!, 1);
  const running = share(tiles.running[cell]!, 2);
  // Most squares have one color: to paint the others of them, too, takes longer than all else of a click.
  let top = y + size;
  const paint = (color: string, height: number): void => {
    if (height <= 0) return;
    top -= height;
    context.fillStyle = color;
    context.fillRect(x, top, size, height);
  };
  paint(colors.failed, failed);
  paint(colors.done, Math.min(done, top - y));
  paint(colors.running, Math.min(running, top - y));
  paint(colors.waiting, top - y);
  if (tiles.failed[cell]) addCross(tiles.failed[cell]! === end - first ? crosses.whole : crosses.part, x, y, size);
  else if (tiles.running[cell]) drawDot(context, colors, x, y, size);
}

function addCross(path: Path2D, x: number, y: number, size: number): void {
  if (size < 9) return;
  const [inner, outer] = [size * 0.3, size * 0.7];
  path.moveTo(x + inner, y + inner);
  path.lineTo(x + outer, y + outer);
  path.moveTo(x + outer, y + inner);
  path.lineTo(x + inner, y + outer);
}

function drawDot(context: CanvasRenderingContext2D, colors: Colors, x: number, y: number, size: number): void {
  context.fillStyle = colors.surface;
  context.beginPath();
  context.arc(x + size / 2, y + size / 2, Math.max(1.5, size / 6), 0, 7);
  context.fill();
}

/** Times that differ by less than a factor of two look alike. */
const LEAST_SPAN = Math.log(2);

/** From 0 (as fast as the fastest) to 1, by the logarithm: a straggler must not make all others look the same. */
function timeScale(tiles: Tiles): (seconds: number | null) => number | null {
  const times = tiles.median_run_s.filter((each): each is number => each !== null && each > 0).map(Math.log);
  const least = Math.min(...times);
  const span = Math.max(LEAST_SPAN, Math.max(...times) - least);
  return (seconds) => (seconds === null ? null : seconds > 0 ? (Math.log(seconds) - least) / span : 0);
}

function drawTime(
  context: CanvasRenderingContext2D,
  colors: Colors,
  share: number | null,
  x: number,
  y: number,
  size: number,
): void {
  context.fillStyle = share === null ? colors.waiting : colors.cold;
  context.fillRect(x, y, size, size);
  if (share === null) return;
  context.globalAlpha = share;
  context.fillStyle = colors.hot;
  context.fillRect(x, y, size, size);
  context.globalAlpha = 1;
}
