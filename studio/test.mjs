// Runs the unit tests of the page's pure functions in Node, without a browser.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const out = mkdtempSync(join(tmpdir(), "studio-tests-"));
await build({
  entryPoints: readdirSync("tests")
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join("tests", name)),
  bundle: true,
  platform: "node",
  format: "esm",
  outExtension: { ".js": ".mjs" },
  outdir: out,
});
const files = readdirSync(out).map((name) => join(out, name));
// Times are shown by the clock of whoever reads them.
const { status } = spawnSync(process.execPath, ["--test", ...files], {
  stdio: "inherit",
  env: { ...process.env, TZ: "UTC" },
});
rmSync(out, { recursive: true });
process.exit(status ?? 1);
