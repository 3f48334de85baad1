// What JSX is compiled to: calls of `h`, which are shorter than those of a JSX runtime.
export { Fragment, h } from "preact";
