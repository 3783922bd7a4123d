// Makes the component. Through the API, because the command of jco fails on some versions of Node.

import { writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const { component } = await componentize({
  sourcePath: 'src/policy.js',
  witPath: 'vendor/wit',
  worldName: 'prune-policy',
  // None of them has anything to say to a policy.
  disableFeatures: ['random', 'clocks', 'http', 'fetch-event', 'stdio'],
});
await writeFile('{{name}}.wasm', component);
console.log(`{{name}}.wasm: ${component.length} bytes`);
