// Style sheets are imported for what esbuild makes of them.
declare module "*.css";
