// Writes tests/text/data/*.tokenizer.json: small tokenizers of our own that between them use every component and
// option of tokenizer.json. Models are chosen so that ids and offsets show what the component did: byte pieces
// spell the text that reached the model, a word-level model without words shows every cut.
import fs from 'node:fs';

const out = new URL('../data/', import.meta.url);
const sample = `the quick brown fox jumps over the lazy dog and then the other dogs sleep under the old tree while
it's raining in the hills; hello world, Hello World! don't you think that the weather (today) is nice? we'll see
that 12 and 123 and 1234 are numbers, x = y + 1 and return x. the end of the story, once upon a time there was.`;

// Byte-pair merges learned from the sample, over lists of symbols.
function learn(words, count) {
  const merges = [];
  for (let round = 0; round < count; ++round) {
    const pairs = new Map();
    for (const word of words)
      for (let i = 0; i + 1 < word.length; ++i) {
        const key = JSON.stringify([word[i], word[i + 1]]);
        pairs.set(key, (pairs.get(key) ?? 0) + 1);
      }
    let best = null;
    for (const [key, n] of pairs) if (n > 1 && (best === null || n > pairs.get(best) || (n === pairs.get(best) && key < best))) best = key;
    if (best === null) break;
    const [a, b] = JSON.parse(best);
    merges.push([a, b]);
    for (const word of words)
      for (let i = 0; i + 1 < word.length; ++i) if (word[i] === a && word[i + 1] === b) word.splice(i, 2, a + b);
  }
  return merges;
}

const byteChars = (() => {
  const table = [];
  let next = 256;
  for (let b = 0; b < 256; ++b)
    table.push(String.fromCodePoint((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : next++));
  return table;
})();
const byteLevel = text => [...Buffer.from(text)].map(b => byteChars[b]).join('');
const fallback = [...Array(256).keys()].map(b => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);
const index = pieces => Object.fromEntries([...new Set(pieces)].map((piece, i) => [piece, i]));
const token = (id, content, options = {}) =>
  ({id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...options});

// Models.
const bytePieceModel = {type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null,
  end_of_word_suffix: null, fuse_unk: false, byte_fallback: true, ignore_merges: false, vocab: index(fallback), merges: []};
const noWordModel = {type: 'WordLevel', vocab: index(['[UNK]', 'the', 'hello', 'world', '12']), unk_token: '[UNK]'};

function byteLevelModel(options = {}) {
  const merges = learn((' ' + sample).match(/ ?[a-zA-Z]+|[^a-zA-Z]+/g).map(w => [...byteLevel(w)]), 150);
  const vocab = index([...byteChars, ...merges.map(m => m.join(''))]);
  return {type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: '', end_of_word_suffix: '',
    fuse_unk: false, byte_fallback: false, ignore_merges: false, vocab, merges: merges.map(m => m.join(' ')), ...options};
}

function characterModel(mark, options = {}, extra = []) {
  const text = mark === ' ' ? sample : sample.replaceAll(' ', mark).replaceAll('\n', mark);
  const merges = learn(text.split(/(?=▁)/).map(w => [...w]), 120);
  const letters = [...new Set([...'abcdefghijklmnopqrstuvwxyzHWTABC.,!?;()\'0123456789=+\n äöé你好' + mark])];
  const vocab = index([...extra, ...letters, ...merges.map(m => m.join(''))]);
  return {type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null,
    fuse_unk: false, byte_fallback: false, vocab, merges, ...options};
}

function affixModel(prefix, suffix) {
  const words = sample.toLowerCase().match(/[a-z]+/g).map(w => [...w].map((c, i) =>
    (i > 0 ? prefix : '') + c + (i + 1 === w.length ? suffix : '')));
  const letters = [...'abcdefghijklmnopqrstuvwxyz0123456789'].flatMap(c => [c, prefix + c, c + suffix, prefix + c + suffix]);
  const merges = [];
  const join = (a, b) => a + b.slice(prefix.length);
  for (let round = 0; round < 120; ++round) {
    const pairs = new Map();
    for (const w of words) for (let i = 0; i + 1 < w.length; ++i) {
      const key = JSON.stringify([w[i], w[i + 1]]);
      pairs.set(key, (pairs.get(key) ?? 0) + 1);
    }
    let best = null;
    for (const [key, n] of pairs) if (n > 1 && (best === null || n > pairs.get(best) || (n === pairs.get(best) && key < best))) best = key;
    if (best === null) break;
    const [a, b] = JSON.parse(best);
    merges.push([a, b]);
    for (const w of words) for (let i = 0; i + 1 < w.length; ++i) if (w[i] === a && w[i + 1] === b) w.splice(i, 2, join(a, b));
  }
  const vocab = index(['<unk>', ...letters, ...merges.map(([a, b]) => join(a, b))]);
  return {type: 'BPE', dropout: null, unk_token: '<unk>', continuing_subword_prefix: prefix || null,
    end_of_word_suffix: suffix || null, fuse_unk: false, byte_fallback: false, vocab, merges};
}

function unigramModel(options = {}, pieces = []) {
  const counts = new Map();
  for (const w of sample.replaceAll(/\s+/g, ' ').split(' '))
    for (let n = 1; n <= 5; ++n) for (let i = 0; i + n <= w.length + 1; ++i) {
      const piece = ('▁' + w).slice(i, i + n);
      counts.set(piece, (counts.get(piece) ?? 0) + 1);
    }
  const scored = [...counts].filter(([p, n]) => n > 2 || [...p].length === 1).map(([p, n]) => [p, Math.log(n) + 1.7 * [...p].length - 12]);
  const all = [['<unk>', 0], ['<s>', 0], ['</s>', 0], ...pieces, ...scored];
  return {type: 'Unigram', unk_id: 0, vocab: all, byte_fallback: false, ...options};
}

function wordPieceModel(options = {}) {
  const words = sample.toLowerCase().match(/[a-z]+|[^a-z\s]/g);
  const pieces = new Set(['[PAD]', '[UNK]', '[CLS]', '[SEP]']);
  for (const w of words) { pieces.add(w.slice(0, 3)); pieces.add(w); for (let i = 1; i < w.length; ++i) pieces.add('##' + w.slice(i, i + 2)); }
  for (const c of 'abcdefghijklmnopqrstuvwxyz0123456789你好äö') { pieces.add(c); pieces.add('##' + c); }
  return {type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100,
    vocab: index(pieces), ...options};
}

// Post-processors.
const template = (cls, sep, clsId, sepId) => ({type: 'TemplateProcessing',
  single: [{SpecialToken: {id: cls, type_id: 0}}, {Sequence: {id: 'A', type_id: 0}}, {SpecialToken: {id: sep, type_id: 0}}],
  pair: [{SpecialToken: {id: cls, type_id: 0}}, {Sequence: {id: 'A', type_id: 0}}, {SpecialToken: {id: sep, type_id: 0}},
    {Sequence: {id: 'B', type_id: 1}}, {SpecialToken: {id: sep, type_id: 2}}],
  special_tokens: {[cls]: {id: cls, ids: [clsId], tokens: [cls]}, [sep]: {id: sep, ids: [sepId], tokens: [sep]}}});

const cl100k = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const o200k = "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const possessive = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s";
const split = (pattern, behavior, invert = false) => ({type: 'Split', pattern, behavior, invert});
const byteLevelStep = (add_prefix_space, use_regex, trim_offsets = true) => ({type: 'ByteLevel', add_prefix_space, trim_offsets, use_regex});
const sequence = (...pretokenizers) => ({type: 'Sequence', pretokenizers});
const metaspace = (prepend_scheme, splits = true) => ({type: 'Metaspace', replacement: '▁', prepend_scheme, split: splits});
const spm = {type: 'Sequence', decoders: [{type: 'Replace', pattern: {String: '▁'}, content: ' '}, {type: 'ByteFallback'}, {type: 'Fuse'},
  {type: 'Strip', content: ' ', start: 1, stop: 0}]};
const byteText = {type: 'Sequence', decoders: [{type: 'ByteFallback'}, {type: 'Fuse'}]};

const byteBase = byteLevelModel();
const byteSize = Object.keys(byteBase.vocab).length;
const all = {};

// Byte-level BPE.
all.bytelevel_gpt2 = {pre_tokenizer: byteLevelStep(false, true), model: byteBase, decoder: byteLevelStep(true, true),
  post_processor: byteLevelStep(false, true, false), added_tokens: [token(byteSize, '<|end|>')]};
all.bytelevel_prefix = {pre_tokenizer: byteLevelStep(true, true), model: byteBase, decoder: byteLevelStep(true, true),
  post_processor: byteLevelStep(true, true, true)};
all.bytelevel_trimmed = {pre_tokenizer: byteLevelStep(false, false), model: byteBase, decoder: byteLevelStep(true, true),
  post_processor: byteLevelStep(false, true, true)};
all.split_cl100k = {normalizer: {type: 'NFC'}, pre_tokenizer: sequence(split({Regex: cl100k}, 'Isolated'), byteLevelStep(false, false)),
  model: byteLevelModel({ignore_merges: true}), decoder: byteLevelStep(true, true),
  post_processor: {type: 'Sequence', processors: [byteLevelStep(true, true, false), template('<|bos|>', '<|eos|>', byteSize, byteSize + 1)]},
  added_tokens: [token(byteSize, '<|bos|>'), token(byteSize + 1, '<|eos|>', {lstrip: true, rstrip: true}),
    token(byteSize + 2, '<tool>', {special: false}), token(byteSize + 3, 'Hello', {special: false, single_word: true, normalized: true}),
    token(byteSize + 4, '   ', {special: false, normalized: true}), token(byteSize + 5, 'é', {special: false, normalized: true})]};
all.split_o200k = {pre_tokenizer: sequence(split({Regex: o200k}, 'Isolated'), byteLevelStep(false, false)), model: byteBase,
  decoder: byteLevelStep(true, true), post_processor: null};
all.split_possessive = {pre_tokenizer: sequence(split({Regex: possessive}, 'Removed', true), byteLevelStep(false, false)), model: byteBase,
  decoder: byteLevelStep(true, true)};
all.digits_bytelevel = {pre_tokenizer: sequence({type: 'Digits', individual_digits: true}, byteLevelStep(false, true)), model: byteBase,
  decoder: byteLevelStep(true, true)};
all.normalizer_bytelevel = {normalizer: {type: 'Sequence', normalizers: [{type: 'NFC'}, {type: 'ByteLevel'}]}, model: byteBase, decoder: byteLevelStep(true, true),
  added_tokens: [token(byteSize, '你好', {special: false, normalized: true})]};

// BPE over characters.
all.bpe_unknown = {pre_tokenizer: {type: 'WhitespaceSplit'}, model: characterModel(' ', {unk_token: '<unk>'}, ['<unk>'])};
all.bpe_fuse_unknown = {pre_tokenizer: metaspace('always'), model: characterModel('▁', {unk_token: '<unk>', fuse_unk: true}, ['<unk>']),
  decoder: metaspace('always')};
all.bpe_dropped_unknown = {pre_tokenizer: metaspace('never'), model: characterModel('▁'), decoder: metaspace('never')};
all.bpe_byte_fallback = {normalizer: {type: 'Sequence', normalizers: [{type: 'Prepend', prepend: '▁'}, {type: 'Replace', pattern: {String: ' '}, content: '▁'}]},
  model: characterModel('▁', {unk_token: '<unk>', fuse_unk: true, byte_fallback: true}, ['<unk>', '<s>', '</s>', ...fallback]), decoder: spm,
  post_processor: template('<s>', '</s>', 1, 2), added_tokens: [token(0, '<unk>', {normalized: true}), token(1, '<s>'), token(2, '</s>', {normalized: true, rstrip: true})]};
all.bpe_some_bytes = {model: characterModel('▁', {unk_token: '<unk>', byte_fallback: true}, ['<unk>', ...fallback.slice(0, 0xc8)]), decoder: byteText};
all.bpe_suffix = {normalizer: {type: 'Lowercase'}, pre_tokenizer: {type: 'Whitespace'}, model: affixModel('', '</w>'), decoder: {type: 'BPEDecoder', suffix: '</w>'}};
all.bpe_prefix = {normalizer: {type: 'Lowercase'}, pre_tokenizer: {type: 'Whitespace'}, model: affixModel('@@', ''),
  decoder: {type: 'WordPiece', prefix: '@@', cleanup: false}};
all.bpe_both_affixes = {pre_tokenizer: {type: 'BertPreTokenizer'}, model: affixModel('@@', '</w>')};

// Unigram.
all.unigram_first = {pre_tokenizer: metaspace('first'), model: unigramModel(), decoder: metaspace('first'),
  post_processor: template('<s>', '</s>', 1, 2), added_tokens: [token(1, '<s>'), token(2, '</s>')]};
all.unigram_bytes = {normalizer: {type: 'Sequence', normalizers: [{type: 'Nmt'}, {type: 'NFKC'}, {type: 'Replace', pattern: {Regex: ' {2,}'}, content: ' '}]},
  pre_tokenizer: metaspace('always', false), model: unigramModel({byte_fallback: true}, fallback.map(p => [p, 0])), decoder: spm};
all.unigram_nowords = {normalizer: {type: 'NFKD'}, model: unigramModel(), decoder: {type: 'Fuse'}};
all.unigram_first_later = {normalizer: {type: 'Strip', strip_left: true, strip_right: true},
  pre_tokenizer: sequence({type: 'Punctuation'}, metaspace('first')), model: unigramModel(), decoder: metaspace('first'), added_tokens: [token(1, '<s>')]};

// WordPiece and WordLevel.
all.wordpiece_bert = {normalizer: {type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true},
  pre_tokenizer: {type: 'BertPreTokenizer'}, model: wordPieceModel(), post_processor: {type: 'BertProcessing', sep: ['[SEP]', 3], cls: ['[CLS]', 2]},
  decoder: {type: 'WordPiece', prefix: '##', cleanup: true}, added_tokens: ['[PAD]', '[UNK]', '[CLS]', '[SEP]'].map((t, i) => token(i, t))};
all.wordpiece_cased = {normalizer: {type: 'BertNormalizer', clean_text: false, handle_chinese_chars: false, strip_accents: true, lowercase: false},
  pre_tokenizer: {type: 'BertPreTokenizer'}, model: wordPieceModel({max_input_chars_per_word: 6}),
  decoder: {type: 'WordPiece', prefix: '##', cleanup: false}};
all.wordlevel_whitespace = {pre_tokenizer: {type: 'Whitespace'}, model: noWordModel,
  post_processor: {type: 'RobertaProcessing', sep: ['</s>', 6], cls: ['<s>', 5], trim_offsets: true, add_prefix_space: true},
  added_tokens: [token(5, '<s>'), token(6, '</s>'), token(7, 'mask', {lstrip: true, single_word: true})]};
all.wordlevel_pair = {pre_tokenizer: {type: 'WhitespaceSplit'}, model: noWordModel, post_processor: template('[C]', '[S]', 5, 6),
  added_tokens: [token(5, '[C]'), token(6, '[S]')]};

// Cuts: what a word is shows in the offsets.
for (const behavior of ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']) {
  const name = behavior.toLowerCase();
  all[`cut_punctuation_${name}`] = {pre_tokenizer: {type: 'Punctuation', behavior}, model: noWordModel};
  all[`cut_regex_${name}`] = {pre_tokenizer: sequence(split({Regex: '[aeiou]|\\d+|\\s'}, behavior), split({String: 'th'}, behavior, true)), model: noWordModel};
}
all.cut_digits = {pre_tokenizer: {type: 'Digits', individual_digits: false}, model: noWordModel};
all.cut_delimiter = {pre_tokenizer: {type: 'CharDelimiterSplit', delimiter: 'e'}, model: noWordModel};
all.cut_fixed = {pre_tokenizer: {type: 'FixedLength', length: 3}, model: noWordModel};
all.cut_metaspace = {pre_tokenizer: sequence(metaspace('always'), split({Regex: '\\p{Lu}|[\\p{L}&&[^a-z]]|\\h{2}'}, 'Isolated')), model: noWordModel, decoder: metaspace('always')};

// Normal forms: the bytes that reach the model.
const forms = {nfc: {type: 'NFC'}, nfd: {type: 'NFD'}, nfkc: {type: 'NFKC'}, nfkd: {type: 'NFKD'}, lowercase: {type: 'Lowercase'}, nmt: {type: 'Nmt'},
  strip_left: {type: 'Strip', strip_left: true, strip_right: false}, strip_right: {type: 'Strip', strip_left: false, strip_right: true},
  accents: {type: 'Sequence', normalizers: [{type: 'NFD'}, {type: 'StripAccents'}]},
  replace: {type: 'Sequence', normalizers: [{type: 'Replace', pattern: {Regex: '\\s+|[aeiou]{2}'}, content: ' é '}, {type: 'Replace', pattern: {String: 'th'}, content: ''}, {type: 'Prepend', prepend: '>é'}]},
  bert: {type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: false, lowercase: true}};
for (const [name, normalizer] of Object.entries(forms)) all[`form_${name}`] = {normalizer, model: bytePieceModel, decoder: byteText};

// Decoders, and cutting to a length.
all.decoder_ctc = {pre_tokenizer: split({String: ''}, 'Isolated'), model: characterModel(' ', {merges: []}, ['<pad>', '|']),
  decoder: {type: 'CTC', pad_token: '<pad>', word_delimiter_token: '|', cleanup: true}, added_tokens: [token(0, '<pad>', {special: false}), token(1, '|', {special: false})]};
all.decoder_replace = {model: {...bytePieceModel}, decoder: {type: 'Sequence', decoders: [{type: 'ByteFallback'}, {type: 'Fuse'},
  {type: 'Replace', pattern: {Regex: '\\s+'}, content: '_'}, {type: 'Strip', content: 'a', start: 2, stop: 0}]}};
all.truncate_longest = {truncation: {direction: 'Right', max_length: 9, strategy: 'LongestFirst', stride: 0}, pre_tokenizer: {type: 'FixedLength', length: 1}, model: noWordModel};
all.truncate_first = {truncation: {direction: 'Left', max_length: 400, strategy: 'OnlyFirst', stride: 0}, pre_tokenizer: {type: 'WhitespaceSplit'}, model: noWordModel,
  post_processor: template('[C]', '[S]', 5, 6), added_tokens: [token(5, '[C]'), token(6, '[S]')]};

for (const [name, parts] of Object.entries(all)) {
  const file = {version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null,
    post_processor: null, decoder: null, ...parts};
  const {model, ...rest} = file;
  fs.writeFileSync(new URL(`${name}.tokenizer.json`, out), JSON.stringify({...rest, model}) + '\n');
}
console.log(`${Object.keys(all).length} tokenizers`);
