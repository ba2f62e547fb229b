// node speed.mjs TOKENIZER_JSON TEXT_FILE...: the measurements of bench/bench_tokenizer.cpp with the HuggingFace
// library (npm tokenizers@0.23.2).
import fs from 'node:fs';
import {Tokenizer} from 'tokenizers';

const [path, ...texts] = process.argv.slice(2);
const now = () => process.cpuUsage();
const seconds = start => { const used = process.cpuUsage(start); return (used.user + used.system) / 1e6; };
let start = now();
Tokenizer.fromFile(path);
console.log(`${path}: ${(fs.statSync(path).size / 1e6).toFixed(1)} MB loaded in ${seconds(start).toFixed(3)} s`);
for (const file of texts) {
  const text = fs.readFileSync(file, 'utf8');
  const megabytes = Buffer.byteLength(text) / 1e6;
  const tokenizer = Tokenizer.fromFile(path);
  for (const run of ['cold', 'again']) {
    start = now();
    const ids = (await tokenizer.encode(text, null, {addSpecialTokens: true})).getLength();
    const s = seconds(start);
    console.log(`  ${file} (${megabytes.toFixed(1)} MB, ${ids} tokens) ${run}: ${s.toFixed(3)} s, ${(megabytes / s).toFixed(1)} MB/s`);
  }
}
