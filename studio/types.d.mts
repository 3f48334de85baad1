/** The types of all answers in an OpenAPI document, as TypeScript. */
export function typesOf(document: object): string;
