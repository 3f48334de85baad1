// Writes src/api/types.ts anew: run it when docs/openapi.json has changed (`npm run generate`, or `make studio`).
import { readFileSync, writeFileSync } from "node:fs";
import { typesOf } from "./types.mjs";

writeFileSync("src/api/types.ts", typesOf(JSON.parse(readFileSync("../docs/openapi.json", "utf8"))));
