// The ABIs that the program is built with are those of the contracts.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CALLED, abiText, compile, projectSources } from "../compile.mjs";

test("abi/ is what the compiler writes", () => {
  const artifacts = compile(projectSources());
  for (const name of CALLED) {
    const file = join(import.meta.dirname, "..", "abi", `${name}.json`);
    assert.equal(readFileSync(file, "utf8"), abiText(artifacts[name].abi), `${name}: run node compile.mjs`);
  }
});
