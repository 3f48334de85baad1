import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lane, PipelineStep, Timeline } from "../src/api/types";
import { boxOf, cellAt, gridOf, roomFor } from "../src/charts/heat_grid";
import { drawBars } from "../src/charts/heat_map";
import type { Colors } from "../src/charts/colors";
import type { Tiles } from "../src/api/types";
import { gapAt, runningAt, tryAt } from "../src/charts/lanes";
import { byteTicks, timeTicks, valueTicks } from "../src/charts/scale";
import { graphOf } from "../src/views/job/overview/step_graph";

test("labels of an axis are round values that reach the highest one", () => {
  assert.deepEqual(valueTicks(7), [0, 2, 4, 6, 8]);
  assert.deepEqual(valueTicks(0), [0, 0.25, 0.5, 0.75, 1]);
  assert.deepEqual(
    byteTicks(3 * 1024 ** 3),
    [0, 1, 2, 3].map((each) => each * 1024 ** 3),
  );
  for (const most of [0.003, 1, 19, 1234, 9.99e9]) {
    const ticks = valueTicks(most);
    assert.ok(ticks.at(-1)! >= most * (1 - 1e-9) && ticks.at(-2)! < most, `${most}: ${ticks}`);
  }
});

test("labels of times are round in the reader's time zone", () => {
  assert.deepEqual(timeTicks(10, 130, 4), [30, 60, 90, 120]);
  assert.deepEqual(timeTicks(10, 230, 3), [60, 120, 180], "one label alone, at 120, wouldn't say how long it is");
  assert.deepEqual(timeTicks(0, 4 * 3600, 4, 1800), [1800, 5400, 9000, 12600]);
});

test("each cell of a heat map is found at its place, and none beside it", () => {
  for (const [cells, width] of [
    [1, 300],
    [37, 300],
    [2048, 900],
    [5, 4],
  ] as const) {
    const grid = gridOf(cells, width);
    for (const cell of [0, Math.floor(cells / 2), cells - 1]) {
      const { x, y, size } = boxOf(grid, cell);
      assert.equal(cellAt(grid, x + size / 2, y + size / 2), cell);
    }
    assert.equal(cellAt(grid, -1, 0), undefined);
    assert.equal(cellAt(grid, 0, grid.height + 1), undefined);
  }
});

test("as many cells as have room are small enough for it", () => {
  for (const width of [100, 390, 1280, 5000]) {
    const room = roomFor(width);
    assert.ok(room >= 64 && room <= 2048);
    if (width >= 390) assert.ok(gridOf(room, width).height <= 300 + 9);
  }
});

test("a try is found by its time, where tries are drawn", () => {
  const lane = { spans: { begin_s: [0, 5], elapsed_s: [2, 1] } } as unknown as Lane;
  assert.equal(tryAt(lane, 1), 0);
  assert.equal(tryAt(lane, 3), undefined);
  assert.equal(tryAt(lane, 5.5), 1);
  assert.equal(tryAt({ spans: null } as unknown as Lane, 1), undefined);
});

test("each gap in a lane has a name, and what runs now is found in it", () => {
  const timeline = { begin_s: 0, end_s: 20, length_s: 20, bucket_s: 1 } as unknown as Timeline;
  const tries = [{ mini_batch: 7, begin_s: 12 }];
  const lane = {
    begin_s: 2,
    end_s: 20,
    init: [0, 0, 1, 0, 0, 0],
    now: { doing: "running", since_s: 12, tries },
  } as unknown as Lane;
  assert.equal(gapAt(timeline, lane, 1), "no worker here yet");
  assert.equal(gapAt(timeline, lane, 2.5), "init()");
  assert.equal(gapAt(timeline, lane, 5), "idle: no mini-batch to run");
  assert.equal(runningAt(lane, 15)?.mini_batch, 7);
  assert.equal(runningAt(lane, 5), undefined);
  const waiting = { ...lane, now: { doing: "waiting_for_data", since_s: 10, tries: [] } } as unknown as Lane;
  assert.match(gapAt(timeline, waiting, 15), /^waits for data/);
  assert.equal(gapAt(timeline, { ...lane, end_s: 8, now: null } as unknown as Lane, 9), "the worker has ended");
});

test("a step of a pipeline is one column to the right of all that it needs", () => {
  const step = (name: string, ...needs: string[]): PipelineStep => ({ name, needs }) as unknown as PipelineStep;
  const graph = graphOf([step("a"), step("b"), step("c", "a", "b"), step("d", "c", "a"), step("e", "gone")], () => "");
  const at = Object.fromEntries(graph.places.map(({ step: { name }, x, y }) => [name, [x, y] as const]));

  assert.ok(at["a"]![0] === at["b"]![0] && at["a"]![1] < at["b"]![1]);
  assert.ok(at["b"]![0] < at["c"]![0] && at["c"]![0] < at["d"]![0]);
  assert.deepEqual(
    graph.edges.map(([from, to]) => `${from.step.name}${to.step.name}`),
    ["ac", "bc", "cd", "ad"],
  );
  assert.ok(graphOf([], () => "").height > 0);
  const long = graphOf([step("a"), step("b")], ({ name }) => (name === "b" ? "why ".repeat(60) : ""));
  assert.ok(long.boxHeight > graph.boxHeight, "a box has room for the whole reason");
});

test("squares of one color in a row are painted at once, with the gaps between them", () => {
  const grid = { cells: 7, columns: 4, rows: 2, pitch: 9, width: 36, height: 18 };
  const tiles = {
    first: 0,
    end: 70,
    bucket_size: 10,
    completed: [10, 10, 10, 10, 10, 9, 0],
    failed: [0, 0, 0, 0, 0, 1, 0],
    running: [0, 0, 0, 0, 0, 0, 0],
  } as unknown as Tiles;
  const calls: unknown[] = [];
  const context = {
    fillStyle: "",
    fillRect: (...box: number[]) => calls.push([context.fillStyle, ...box]),
    clearRect: (...box: number[]) => calls.push(["cut", ...box]),
  };
  drawBars(context, { done: "green", waiting: "grey" } as Colors, grid, tiles);
  assert.deepEqual(calls, [
    ["green", 0, 0, 34, 7],
    ["green", 0, 9, 7, 7],
    ["grey", 18, 9, 7, 7],
    ["cut", 7, 0, 2, 18],
    ["cut", 16, 0, 2, 18],
    ["cut", 25, 0, 2, 18],
  ]);
});
