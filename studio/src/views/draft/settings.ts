// Settings at the top level of a YAML document that have a line of their own: read and changed in place, so that all else
// stays as it was written.

const lineOf = (name: string): RegExp => new RegExp(`^${name}:[ \\t]*(.*)$`, "m");

/** The value of a setting as it is written; empty: there is none, or it has more than one line. */
export const settingIn = (yaml: string, name: string): string => lineOf(name).exec(yaml)?.[1]?.trim() ?? "";

/** The document with a setting changed; an empty value takes it away. */
export function withSetting(yaml: string, name: string, value: string): string {
  const line = lineOf(name);
  if (!value) return yaml.replace(new RegExp(`^${name}:.*\\n?`, "m"), "");
  if (line.test(yaml)) return yaml.replace(line, () => `${name}: ${value}`);
  return `${yaml.replace(/\n*$/, "\n")}${name}: ${value}\n`;
}
