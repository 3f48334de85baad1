import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job, JobFailure, Pace } from "../src/api/types";
import { causeOf, firstCauseOf } from "../src/words/errors";
import { bytes, count, counted, percent, rate } from "../src/words/numbers";
import { paceOf, shareOf, standingOf } from "../src/words/pace";
import { kindOf } from "../src/words/states";
import { numberIn, rowsOf } from "../src/words/table";
import { age, duration, clock, moment, switchZone, zone } from "../src/words/times";
import { crc32, zipOf } from "../src/words/zip";
import type { AdviceCurve, Compared, Comparison } from "../src/api/types";
import { sideBySide } from "../src/views/compare/columns";
import { changeOf, FIGURES } from "../src/views/compare/figures";
import { changeOf as tagsFrom } from "../src/views/jobs/tags";
import { changesBetween } from "../src/views/draft/diff";
import { settingIn, withSetting } from "../src/views/draft/settings";
import { untilPlateau } from "../src/views/job/advice/plateau";
import { soFar } from "../src/views/job/overview/so_far";
import { capital, ended } from "../src/words/sentence";
import { titleOf } from "../src/words/title";

const PROGRESS = { items_done: 0, items_failed: 0, done: 0, failed: 0, scheduled: 0, resumed: 0, items_scheduled: 0 };

function jobWith(fields: Partial<Job>, progress: Partial<Job["progress"]> = {}): Job {
  const whole = { ...PROGRESS, items_ahead: 0, listing_done: true, all_found: true, ...progress };
  return { state: "processing", steps: [], ...fields, progress: whole } as unknown as Job;
}

test("a duration has two units at most, and none that is 60 of the next", () => {
  const durations: [number, string][] = [
    [0.0004, "<1 ms"],
    [0.35, "350 ms"],
    [0.9996, "1.0 s"],
    [4.24, "4.2 s"],
    [59.6, "60 s"],
    [60, "1 min"],
    [185, "3 min 05 s"],
    [3599.6, "1 h"],
    [2 * 3600 + 600, "2 h 10 min"],
    [5 * 86400 + 4 * 3600, "5 d 04 h"],
  ];
  for (const [seconds, words] of durations) assert.equal(duration(seconds), words);
});

test("an age is rough", () => {
  const now = Date.parse("2026-01-03T00:00:00Z");
  assert.equal(age("2026-01-02T23:59:55Z", now), "just now");
  assert.equal(age("2026-01-02T23:59:01Z", now), "59 s ago");
  assert.equal(age("2026-01-02T01:00:00Z", now), "23 h ago");
  assert.equal(age("2025-12-31T00:00:00Z", now), "3 d ago");
});

test("numbers have the digits that count", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(counted(1, "row"), "1 row");
  assert.equal(counted(2000, "mini-batch", "mini-batches"), "2,000 mini-batches");
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(1023), "1,023 B");
  assert.equal(bytes(1024), "1.00 KiB");
  assert.equal(bytes(2 ** 62), "4,096 PiB");
  assert.equal(rate(0), "–");
  assert.equal(rate(0.05), "3/min");
  assert.equal(rate(1234), "1.23K/s");
});

test("a share is 0 or 100 % only when it is exactly that", () => {
  assert.equal(percent(0), "0 %");
  assert.equal(percent(0.001), "<1 %");
  assert.equal(percent(0.999), ">99 %");
  assert.equal(percent(1), "100 %");
});

test("cells of a table may have quotes, commas and line breaks, and a line that is still written is left out", () => {
  const rows = rowsOf('name,run_s\n"a ""b"", c\nd",1.5\nplain,\nhal');
  assert.deepEqual(rows, [
    { name: 'a "b", c\nd', run_s: "1.5" },
    { name: "plain", run_s: "" },
  ]);
  assert.equal(numberIn(rows[0]!, "run_s"), 1.5);
  assert.ok(Number.isNaN(numberIn(rows[1]!, "run_s")));
  assert.ok(Number.isNaN(numberIn(rows[1]!, "missing")));
});

const started = "2026-01-01T00:00:00Z";
const pace: Pace = {
  standing: "running",
  as_of: "2026-01-01T00:00:10Z",
  waited_s: 4,
  ran_s: 6,
  items_per_s: 5,
  mini_batches_per_s: 5,
  left_s: 20,
  ends: "2026-01-01T00:00:30Z",
};

test("a job's pace is the server's, and its clock goes on until the next answer", () => {
  const now = Date.parse(started) + 12_000;
  assert.equal(paceOf(jobWith({ started: null, pace: null }), now).leftS, undefined);
  const running = paceOf(jobWith({ started, pace }), now);
  assert.deepEqual(running, { elapsedS: 8, waitedS: 4, itemsPerS: 5, leftS: 18, ends: pace.ends });
});

test("a job without a worker waits, whatever its state is called", () => {
  const waiting = jobWith({ started, pace: { ...pace, standing: "waiting_for_workers", ran_s: 0, left_s: null } });
  assert.equal(standingOf(waiting), "waiting_for_workers");
  const { elapsedS, waitedS, leftS } = paceOf(waiting, Date.parse(started) + 12_000);
  assert.deepEqual({ elapsedS, waitedS, leftS }, { elapsedS: 0, waitedS: 6, leftS: undefined });
});

test("the share of a pipeline is that of the steps that have completed", () => {
  const steps = [{ state: "completed" }, { state: "running" }, { state: "skipped" }, { state: "failed" }];
  assert.equal(shareOf(jobWith({ type: "pipeline", steps } as Partial<Job>)), 0.25);
  assert.equal(shareOf(jobWith({}, { scheduled: 4, done: 1 })), 0.25);
  assert.equal(shareOf(jobWith({})), 0);
  assert.equal(shareOf(jobWith({ state: "completed" })), 1);
});

test("a job without a name is told from others by its script and id", () => {
  const id = "job_01m8d7253nd151f1s851";
  assert.equal(titleOf({ id, name: "digits" }), "digits");
  assert.equal(titleOf({ id, name: "job" }), "job f1s851");
  assert.equal(
    titleOf({ id, name: "", spec: { entry_script: "src/score.py" } } as Parameters<typeof titleOf>[0]),
    "score.py f1s851",
  );
});

test("a state that a later release has made is one that waits", () => {
  assert.equal(kindOf("disk_full"), "failed");
  assert.equal(kindOf("of_a_later_release"), "waiting");
});

test("times say in which zone they are, which can be switched", () => {
  const time = "2026-01-31T22:05:06Z";
  assert.equal(clock(time), "22:05:06 UTC");
  assert.equal(moment(time), "31 Jan 2026, 22:05:06 UTC");
  switchZone();
  assert.equal(zone.value, "UTC");
  assert.equal(clock(time), "22:05:06 UTC");
  switchZone();
});

test("what is done so far leads to the end that is expected", () => {
  const { times, done, expected } = soFar(100, { bucket_s: 10, items: [1, 2, 3] }, 20, 200);
  assert.deepEqual(times, [100, 110, 120, 130, 200]);
  assert.deepEqual(done, [0, 1, 3, 6, null]);
  assert.deepEqual(expected, [null, null, null, 6, 20]);
  assert.deepEqual(soFar(0, { bucket_s: 1, items: [4] }, 4, undefined).done, [0, 4]);
});

test("a setting is changed in its line, and all else stays as it was written", () => {
  const yaml = "name: one # first\ninputs:\n  data: /x\nmini_batch_size: 5\n";
  assert.equal(settingIn(yaml, "mini_batch_size"), "5");
  assert.equal(settingIn(yaml, "inputs"), "");
  assert.equal(withSetting(yaml, "mini_batch_size", "9"), yaml.replace("5", "9"));
  assert.equal(withSetting(yaml, "mini_batch_size", ""), "name: one # first\ninputs:\n  data: /x\n");
  assert.equal(withSetting("a: 1", "b", "$1"), "a: 1\nb: $1\n");
});

test("changes are the lines that are gone and those that are new", () => {
  const changes = changesBetween("a\nb\nc", "a\nx\nc\nd").filter(({ kind }) => kind !== "same");
  assert.deepEqual(
    changes.map(({ kind, line }) => `${kind} ${line}`),
    ["gone b", "new x", "new d"],
  );
});

test("a zip has its files as they are, and the checksums that others expect", async () => {
  const content = new TextEncoder().encode("hello");
  assert.equal(crc32(content), 0x3610a686);
  const zip = new DataView(await zipOf([{ name: "a/b.py", content }]).arrayBuffer());
  assert.equal(zip.getUint32(0, true), 0x04034b50);
  assert.equal(zip.getUint32(14, true), 0x3610a686);
  assert.equal(zip.getUint16(zip.byteLength - 22 + 10, true), 1);
});

test("of jobs that are compared, better and worse are marked, and nothing is said of noise", () => {
  const of = (name: string, before: number, after: number, areComparable = true): string | undefined =>
    changeOf(FIGURES.find((each) => each.name === name)!, before, after, areComparable)?.text;
  assert.equal(of("took_s", 100, 150), "+50 % worse");
  assert.equal(of("items_per_s", 100, 150), "+50 % better");
  assert.equal(of("took_s", 100, 150, false), "+50 %");
  assert.equal(of("took_s", 100, 104), undefined);
  assert.equal(of("median_run_s", 0.018, 0.031), undefined);
  assert.equal(of("nodes", 2, 4), "+100 %");
});

test("comparisons of one job with others are one table", () => {
  const job = (id: string): Compared => ({ id, name: id, state: "completed" }) as unknown as Compared;
  const pair = (other: string, settings: Comparison["settings"]): Comparison => ({
    jobs: [job("a"), job(other)],
    settings,
  });
  const table = sideBySide([
    pair("b", [{ name: "nodes", values: [1, 2] }]),
    pair("c", [{ name: "size", values: [10, 20] }]),
  ]);
  assert.deepEqual(
    table.jobs.map(({ id }) => id),
    ["a", "b", "c"],
  );
  assert.deepEqual(table.settings, [
    { name: "nodes", values: [1, 2, 1] },
    { name: "size", values: [10, 10, 20] },
  ]);
});

test("tags are written as on the command line", () => {
  assert.deepEqual(tagsFrom("team=vision checked -draft  note=a=b"), {
    set: { team: "vision", checked: "", note: "a=b" },
    remove: ["draft"],
  });
});

test("what was nothing before, and is something now, differs", () => {
  const failed = FIGURES.find(({ name }) => name === "failed_mini_batches")!;
  assert.deepEqual(changeOf(failed, 0, 5, true), { text: "+5 worse", kind: "bad" });
  assert.equal(changeOf(failed, 0, 0, true), null);
});

test("a sentence begins with a capital, and a name of code stays as it is", () => {
  assert.equal(capital("read it"), "Read it");
  assert.equal(capital("init() runs once"), "init() runs once");
  assert.equal(capital("mini_batch_size: 1 keeps more"), "mini_batch_size: 1 keeps more");
  assert.equal(capital("canceled"), "Canceled");
  assert.equal(ended("put it below `code`"), "put it below `code`.");
  assert.equal(ended("Resume it."), "Resume it.");
});

test("a what-if ends where nothing is gained of what is left", () => {
  const curve = (seconds: number): AdviceCurve => ({
    job_id: "job_0",
    setting: "nodes",
    now: 2,
    seconds,
    points: [1, 2, 4, 8, 16, 32, 64].map((value) => ({
      value,
      seconds: (seconds * 2) / value,
      node_hours: 1,
      cost: null,
    })),
    notes: [],
  });
  const values = (...inputs: Parameters<typeof untilPlateau>): number[] =>
    untilPlateau(...inputs).map(({ value }) => value);
  assert.deepEqual(values(curve(3600)), [1, 2, 4, 8, 16, 32, 64], "an hour gains by each of them");
  assert.deepEqual(values(curve(114), 17), [1, 2, 4], "17 s are left: 64 nodes would save 8 of them at most");
  assert.deepEqual(values(curve(7)), [1, 2], "the job took 7 s; the number of nodes that it had is always there");
  assert.deepEqual(values(curve(3600), 3600, 10), [1, 2, 4, 8, 16], "more than one node a mini-batch has no work");
});

test("what has gone wrong is told in words, and a code that is not known without its signs", () => {
  assert.equal(causeOf("RUN_EXCEPTION"), "run() raised");
  assert.equal(causeOf("JOB_DAMAGED"), "job damaged");
  const failure = { error_category: "RUN_EXCEPTION", first_cause: "RUN_EXCEPTION: ValueError: HTTP: 404" };
  assert.equal(firstCauseOf(failure as JobFailure), "ValueError: HTTP: 404");
  assert.equal(
    firstCauseOf({ error_category: "", first_cause: "node1: can't read it" } as JobFailure),
    "node1: can't read it",
  );
});
