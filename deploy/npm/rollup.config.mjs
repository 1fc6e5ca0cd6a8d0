// Bundles the types, those of gen/ts among them, so that the package needs no other one.
import { dts } from "rollup-plugin-dts";

export default ["index", "react"].map((name) => ({
  input: `src/${name}.ts`,
  output: { file: `dist/${name}.d.ts`, format: "es" },
  external: ["react", "./index.js"],
  plugins: [dts({ respectExternal: true })],
}));
