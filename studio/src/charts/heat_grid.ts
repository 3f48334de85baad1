// Where the cells of a heat map are: rows of squares, read like text.

export interface Grid {
  cells: number;
  columns: number;
  rows: number;
  /** From one cell to the next, in pixels. */
  pitch: number;
  width: number;
  height: number;
}

const LARGEST = 26;
const SMALLEST = 9;
const MOST_HEIGHT = 300;
export const GAP = 2;

/** As large as they may be, so that all of them have room. */
export function gridOf(cells: number, width: number): Grid {
  let pitch = LARGEST;
  while (pitch > SMALLEST && heightOf(cells, width, pitch) > MOST_HEIGHT) pitch--;
  const columns = Math.max(1, Math.floor(width / pitch));
  return { cells, columns, rows: Math.ceil(cells / columns), pitch, width, height: heightOf(cells, width, pitch) };
}

/** So many cells of the smallest size have room. */
export const roomFor = (width: number): number =>
  Math.min(2048, Math.max(64, Math.floor(width / SMALLEST) * Math.floor(MOST_HEIGHT / SMALLEST)));

export const boxOf = (grid: Grid, cell: number): { x: number; y: number; size: number } => ({
  x: (cell % grid.columns) * grid.pitch,
  y: Math.floor(cell / grid.columns) * grid.pitch,
  size: grid.pitch - GAP,
});

/** The cell at a point; undefined: there is none. */
export function cellAt(grid: Grid, x: number, y: number): number | undefined {
  const column = Math.floor(x / grid.pitch);
  const cell = Math.floor(y / grid.pitch) * grid.columns + column;
  return column >= 0 && column < grid.columns && cell >= 0 && cell < grid.cells ? cell : undefined;
}

const heightOf = (cells: number, width: number, pitch: number): number =>
  Math.max(1, Math.ceil(cells / Math.max(1, Math.floor(width / pitch)))) * pitch;
