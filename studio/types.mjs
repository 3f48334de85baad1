// The answers of the REST API as TypeScript, from docs/openapi.json: what is in src/api/types.ts.

const HEAD = `// Generated from docs/openapi.json by generate.mjs (npm run generate): not to be edited.
// The API leaves out no field of an answer, so each is required here.
`;

/** The types of all answers in an OpenAPI document. */
export function typesOf(document) {
  const { schemas } = document.components;
  const names = reached(document, schemas);
  return HEAD + names.map((name) => declared(name, schemas[name])).join("");
}

/** The names of schemas that answers consist of, sorted. */
function reached({ paths }, schemas) {
  const names = new Set();
  const follow = (value) => {
    if (typeof value !== "object" || value === null) return;
    const name = value.$ref?.split("/").at(-1);
    if (name && !names.has(name)) {
      names.add(name);
      follow(schemas[name]);
    }
    Object.values(value).forEach(follow);
  };
  for (const path of Object.values(paths)) for (const operation of Object.values(path)) follow(operation.responses);
  return [...names].sort();
}

function declared(name, schema) {
  const comment = remark(schema.description, "");
  if (!schema.properties) return `\n${comment}export type ${name} = ${typed(schema)};\n`;
  const fields = Object.entries(schema.properties).map(
    ([field, value]) => `${remark(value.description, "  ")}  ${field}: ${typed(value)};\n`,
  );
  return `\n${comment}export interface ${name} {\n${fields.join("")}}\n`;
}

function remark(text, indent) {
  if (!text) return "";
  const lines = text.trim().replaceAll("*/", "* /").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${`${indent} * ${line}`.trimEnd()}\n`).join("")}${indent} */\n`;
}

function typed(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return [...new Set(options.map(typed))].join(" | ");
  if (schema.allOf?.length === 1) return typed(schema.allOf[0]);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  switch (schema.type) {
    case "array":
      return schema.items ? `${bracketed(typed(schema.items))}[]` : "unknown[]";
    case "object":
      return typeof schema.additionalProperties === "object"
        ? `Record<string, ${typed(schema.additionalProperties)}>`
        : "Record<string, unknown>";
    case "integer":
    case "number":
      return "number";
    case "boolean":
    case "null":
    case "string":
      return schema.type;
    default:
      return "unknown";
  }
}

function bracketed(type) {
  return type.includes(" | ") ? `(${type})` : type;
}
