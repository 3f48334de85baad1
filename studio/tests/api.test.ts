import assert from "node:assert/strict";
import { test } from "node:test";
import { apiPath, filePath, jobPath } from "../src/api/paths";

test("every part of a path is encoded, and slashes of a file's path stay", () => {
  assert.equal(jobPath("a/b?c"), "/v1/jobs/a%2Fb%3Fc");
  assert.equal(filePath("j", "logs", "user/a b#.txt"), "/v1/jobs/j/logs/user/a%20b%23.txt");
});

test("what is not asked for is not in the query", () => {
  assert.equal(apiPath("/jobs", { state: "", name: undefined }), "/v1/jobs");
  assert.equal(apiPath("/jobs", { limit: 0, name: "a&b" }), "/v1/jobs?limit=0&name=a%26b");
});
