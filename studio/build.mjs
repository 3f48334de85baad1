// Builds the page into the folder that is named on the command line: no file of it depends on when or where it is built.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [, , out] = process.argv;
if (!out) throw new Error("name the folder: node build.mjs FOLDER");

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({
  entryPoints: { app: "src/app.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  // Calls of `h`, which are shorter than those of the JSX runtime that the types are checked with.
  tsconfigRaw: {},
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: ["src/jsx.ts"],
  charset: "utf8",
  legalComments: "none", // all of them, in full, are in licenses.txt
  outdir: out,
});
copyFileSync("src/index.html", join(out, "index.html"));

const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const packages = [...Object.keys(dependencies), "@preact/signals-core"].sort();
const licenses = packages.map(
  (name) => `${name}\n\n${readFileSync(join("node_modules", name, "LICENSE"), "utf8").trim()}\n`,
);
writeFileSync(join(out, "licenses.txt"), licenses.join("\n----\n\n"));
