// Builds the page into the folder that is named on the command line: no file of it depends on when or where it is built.
import { build } from "esbuild";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const [, , out] = process.argv;
if (!out) throw new Error("name the folder: node build.mjs FOLDER");

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  entryPoints: { app: "src/app.tsx" },
  bundle: true,
  // What is imported by `lazy` gets a file of its own, under the name of its content: a browser keeps it for good.
  splitting: true,
  chunkNames: "[name]-[hash]",
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
  metafile: true,
  outdir: out,
});

// What the first file imports is asked for together with it, not after it.
const [first] = Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint === "src/app.tsx");
const preloads = first.imports
  .filter(({ kind }) => kind === "import-statement")
  .map(({ path }) => `    <link rel="modulepreload" href="/${basename(path)}">\n`);
const page = readFileSync("src/index.html", "utf8").replace(/(?=^ *<script)/m, preloads.join(""));
writeFileSync(join(out, "index.html"), page);

const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const packages = [...Object.keys(dependencies), "@preact/signals-core"].sort();
const licenses = packages.map(
  (name) => `${name}\n\n${readFileSync(join("node_modules", name, "LICENSE"), "utf8").trim()}\n`,
);
writeFileSync(join(out, "licenses.txt"), licenses.join("\n----\n\n"));
