#include "arch/golden_runner.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "formats/format_info.h"
#include "golden_file.h"

namespace tessera {
namespace {

constexpr int32_t kSequences = 3;
constexpr int32_t kLongest = 512;  // positions a sequence may reach

// What the embedding op would look up.
void append_embedding(const Plan& plan, const BoundWeights& weights, int64_t id, std::vector<float>& rows) {
  const EmbedOp* first = nullptr;
  for (const Op& op : plan.ops)
    if (first == nullptr) first = std::get_if<EmbedOp>(&op);
  const auto width = static_cast<size_t>(first->output.width);
  std::vector<float> row(width);
  const Weight* part = weights.at(first->table).parts.data();
  while (id >= part->rows) id -= (part++)->rows;
  decode_row(*part, id, 0, first->output.width, row.data());
  for (const float value : row) rows.push_back(value * first->scale);
}

}  // namespace

const char* way_name(Way way) {
  switch (way) {
    case Way::kWhole:
      return "whole";
    case Way::kTokens:
      return "tokens";
    case Way::kChunks:
      return "chunks";
    case Way::kRagged:
      return "ragged";
  }
  return "?";
}

GoldenPaths golden_paths(const GoldenCase& golden, const std::string& config) {
  const std::string root = "tests/goldens/";
  const std::string base = root + std::string(golden.folder) + "/" + std::string(golden.name);
  if (golden.folder == "gguf/arch")
    return {base + ".gguf", "", root + "arch/" + std::string(golden.name) + "/golden.safetensors"};
  if (golden.folder == "gguf/quant") return {base + ".gguf", "", base + ".golden.safetensors"};
  if (golden.folder == "formats") return {base, "", base + "/golden.safetensors"};
  return {base, base + "/" + config, base + "/golden.safetensors"};
}

Result<Golden> read_golden(const std::string& path) {
  const GoldenFile file = GoldenFile::open(path);
  Golden golden{file.ints("input_ids"), file.floats("logits"), {}};
  if (file.has("greedy_ids")) golden.greedy = file.ints("greedy_ids");
  return golden;
}

double normalised_squared_error(const std::vector<float>& values, const std::vector<float>& reference) {
  if (values.size() != reference.size() || values.empty()) return INFINITY;
  double difference = 0;
  double square = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double d = static_cast<double>(values[i]) - reference[i];
    difference += d * d;
    square += static_cast<double>(reference[i]) * reference[i];
  }
  return std::isnan(difference) ? INFINITY : difference / square;
}

Result<std::unique_ptr<GoldenModel>> GoldenModel::load(const std::string& checkpoint_path,
                                                       const std::string& config_path,
                                                       std::string_view backend,
                                                       const CompileOptions& options) {
  TESSERA_TRY(auto checkpoint, Checkpoint::open(checkpoint_path));
  if (config_path.empty()) return load(std::move(checkpoint), backend, options);
  TESSERA_TRY(const Config config, Config::from_hf_file(config_path));
  TESSERA_TRY(LoadedModel model, load_model(std::move(checkpoint), config));
  return make(std::move(model), backend, options);
}

Result<std::unique_ptr<GoldenModel>> GoldenModel::load(std::shared_ptr<const Checkpoint> checkpoint,
                                                       std::string_view backend,
                                                       const CompileOptions& options) {
  TESSERA_TRY(LoadedModel model, load_model(std::move(checkpoint)));
  return make(std::move(model), backend, options);
}

Result<std::unique_ptr<GoldenModel>> GoldenModel::make(LoadedModel model, std::string_view backend,
                                                       const CompileOptions& options) {
  auto golden = std::unique_ptr<GoldenModel>(new GoldenModel());
  golden->model_ = std::move(model);
  TESSERA_TRY(golden->plan_, build_plan(golden->model_.spec, golden->model_.weights));
  TESSERA_TRY(golden->backend_, make_backend(backend));
  TESSERA_TRY(golden->executable_, golden->backend_->compile(golden->plan_, golden->model_.weights, options));
  TESSERA_TRY_STATUS(golden->reset());
  return golden;
}

Status GoldenModel::reset() {
  const auto pages = static_cast<int64_t>(kSequences) * kLongest / executable_->options().page_positions;
  StateCapacity capacity;
  for (const StateGroup& group : plan_.states)
    capacity.pages.push_back(group.kind == StateKind::kFixed ? 0 : pages);
  capacity.slots = kSequences;
  TESSERA_TRY(state_, executable_->allocate_state(capacity));
  return {};
}

Status GoldenModel::step(std::vector<Sequence>& sequences, const std::vector<int32_t>& counts,
                         std::vector<float>& logits) {
  const int32_t per_sequence = kLongest / executable_->options().page_positions;
  std::vector<int32_t> tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> offsets = {0};
  std::vector<int32_t> past;
  std::vector<int32_t> lengths;
  std::vector<int32_t> slots;
  std::vector<int32_t> rows;
  std::vector<int32_t> pages;
  std::vector<int32_t> page_offsets = {0};
  size_t wanted = 0;
  for (size_t s = 0; s < sequences.size(); ++s) {
    Sequence& sequence = sequences[s];
    if (counts[s] == 0) continue;
    for (int32_t i = 0; i < counts[s]; ++i) {
      if (s == 0) rows.push_back(static_cast<int32_t>(tokens.size()));
      tokens.push_back(sequence.ids[static_cast<size_t>(sequence.past + i)]);
      positions.push_back(sequence.past + i);
    }
    if (s == 0) wanted = static_cast<size_t>(counts[s]);
    offsets.push_back(static_cast<int32_t>(tokens.size()));
    past.push_back(sequence.past);
    lengths.push_back(static_cast<int32_t>(sequence.ids.size()));
    slots.push_back(sequence.first_page);
    // Every page of the pool belongs to some sequence by a fixed scramble.
    for (int32_t page = 0; page < per_sequence; ++page)
      pages.push_back((page * kSequences + sequence.first_page) * 7 % (per_sequence * kSequences));
    page_offsets.push_back(static_cast<int32_t>(pages.size()));
  }
  std::vector<float> embeddings;
  if (feed_.rows != Feed::Rows::kIds)
    for (const int32_t id : tokens) append_embedding(plan_, model_.weights, id, embeddings);
  if (feed_.axes != nullptr) {
    std::vector<int32_t> axes;
    for (size_t axis = 0; axis < 3; ++axis)
      for (const int32_t position : positions) axes.push_back(feed_.axes(position)[axis]);
    positions = axes;
  }
  const std::vector<PageTable> tables(plan_.states.size(), PageTable{pages, page_offsets});
  StepInput input;
  input.state = state_.get();
  if (feed_.rows != Feed::Rows::kEmbeddings) input.tokens = tokens;
  input.embeddings = embeddings;
  input.positions = positions;
  input.sequence_offsets = offsets;
  input.past = past;
  input.rope_lengths = lengths;
  input.page_tables = tables;
  input.read_slots = slots;
  input.write_slots = slots;
  input.output_rows = rows;
  TESSERA_TRY(const Ticket ticket, executable_->submit(input));
  TESSERA_TRY(const StepOutput output, executable_->wait(ticket));
  if (output.logits.size() != wanted * static_cast<size_t>(plan_.vocabulary))
    return fail(ErrorCode::kDevice, "{} logits for {} rows", output.logits.size(), wanted);
  logits.insert(logits.end(), output.logits.begin(), output.logits.end());
  for (size_t s = 0; s < sequences.size(); ++s) sequences[s].past += counts[s];
  return {};
}

Result<std::vector<float>> GoldenModel::logits(const std::vector<int32_t>& ids, Way way) {
  TESSERA_TRY_STATUS(reset());
  const auto count = static_cast<int32_t>(ids.size());
  std::vector<float> logits;
  std::vector<Sequence> sequences = {{ids, 0, 1}};
  if (way == Way::kRagged) {
    // Two others, of other lengths, before and after in time: one is ahead when the prompt comes, one starts
    // with it.
    Sequence first{{}, 0, 0};
    Sequence second{{}, 0, 2};
    for (int32_t i = 0; i < 19; ++i)
      first.ids.push_back(3 + (i * 37 + 11) % (static_cast<int32_t>(plan_.vocabulary) - 3));
    for (int32_t i = 0; i < 5; ++i)
      second.ids.push_back(3 + (i * 53 + 29) % (static_cast<int32_t>(plan_.vocabulary) - 3));
    sequences.push_back(first);
    sequences.push_back(second);
    TESSERA_TRY_STATUS(step(sequences, {0, 9, 0}, logits));
    const int32_t part = count / 2;
    TESSERA_TRY_STATUS(step(sequences, {part, 1, 5}, logits));
    TESSERA_TRY_STATUS(step(sequences, {count - part, 9, 0}, logits));
    return logits;
  }
  const int32_t chunk = way == Way::kWhole ? count : way == Way::kTokens ? 1 : 7;
  for (int32_t done = 0; done < count; done += chunk)
    TESSERA_TRY_STATUS(step(sequences, {std::min(chunk, count - done)}, logits));
  return logits;
}

Result<std::vector<int32_t>> GoldenModel::greedy(const std::vector<int32_t>& prompt, size_t count,
                                                 double gap) {
  TESSERA_TRY_STATUS(reset());
  std::vector<Sequence> sequences = {{prompt, 0, 2}};
  std::vector<int32_t> ids;
  std::vector<float> logits;
  int64_t table_key = -1;
  while (ids.size() < count) {
    // A length-dependent rope table that changes makes the state stale: it is computed again from the ids.
    int64_t key = 0;
    for (const RopeSpec& rope : plan_.ropes)
      key += rope.table_key(static_cast<int64_t>(sequences[0].ids.size()));
    if (key != table_key) sequences[0].past = 0;
    table_key = key;
    logits.clear();
    const auto fresh = static_cast<int32_t>(sequences[0].ids.size()) - sequences[0].past;
    TESSERA_TRY_STATUS(step(sequences, {fresh}, logits));
    const auto last = logits.end() - plan_.vocabulary;
    const auto best = std::max_element(last, logits.end());
    float second = -INFINITY;
    for (auto it = last; it != logits.end(); ++it)
      if (it != best) second = std::max(second, *it);
    if (*best - second < gap) break;
    ids.push_back(static_cast<int32_t>(best - last));
    sequences[0].ids.push_back(ids.back());
  }
  return ids;
}

}  // namespace tessera
