// Code and data that go from the browser to the server, as versions of assets.

import { Problem, sendForm } from "./http";
import { apiPath } from "./paths";
import type { Asset } from "./types";
import { zipOf, type ZippedFile } from "../words/zip";

/** What a document of a job has as its `code` to run this. It gets a name that nobody else has taken or foretells. */
export async function sendCode(files: ZippedFile[]): Promise<string> {
  const path = apiPath(`/assets/code/${unforetold("code")}/versions/1`);
  const asset = await sendForm<Asset>("PUT", path, {}, zipOf(files));
  return String(asset.content["path"]);
}

/** The name of a folder of these files for the inputs of jobs. The same version again is the same files; if somebody has
 * taken the name for others, it gets one that nobody foretells. */
export async function sendData(name: string, version: string, files: ZippedFile[]): Promise<string> {
  try {
    return await sendNamed(name, version, files);
  } catch (error) {
    if (error instanceof Problem && TAKEN.includes(error.code)) return sendNamed(unforetold(name), version, files);
    throw error;
  }
}

const TAKEN = ["not_allowed", "conflict"];

function unforetold(name: string): string {
  const digits = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0"));
  return `${name}-${digits.join("")}`;
}

async function sendNamed(name: string, version: string, files: ZippedFile[]): Promise<string> {
  const path = apiPath(`/assets/data/${name}/versions/${version}`);
  const zip = zipOf(files.map((file) => ({ ...file, name: `${name}/${file.name}` })));
  await sendForm<Asset>("PUT", path, { type: "uri_folder", path: name }, zip);
  return `azureml:${name}:${version}`;
}
