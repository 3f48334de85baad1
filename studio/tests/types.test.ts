import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { typesOf } from "../types.mjs";

test("the types of answers are those of the API (npm run generate)", () => {
  const document = JSON.parse(readFileSync("../docs/openapi.json", "utf8"));
  assert.equal(readFileSync("src/api/types.ts", "utf8"), typesOf(document));
});

test("a type says what may be null, what a list holds, and which texts there are", () => {
  const schema = {
    properties: {
      at: { anyOf: [{ type: "string" }, { type: "null" }] },
      kinds: { type: "array", items: { enum: ["one", "two"] } },
      parts: { type: "object", additionalProperties: { $ref: "#/components/schemas/Part" } },
    },
  };
  const schemas = { Asked: { properties: {} }, Part: { type: "string", enum: ["a"] }, Whole: schema };
  const ok = { content: { "application/json": { schema: { $ref: "#/components/schemas/Whole" } } } };
  const post = { requestBody: { $ref: "#/components/schemas/Asked" }, responses: { 200: ok } };
  const text = typesOf({ paths: { "/wholes": { post } }, components: { schemas } });
  assert.match(text, /export type Part = "a";/);
  assert.match(text, /at: string \| null;\n {2}kinds: \("one" \| "two"\)\[\];\n {2}parts: Record<string, Part>;/);
  assert.doesNotMatch(text, /Asked/);
});
