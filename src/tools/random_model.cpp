// Encoding a billion random numbers would take longer than the benchmark: a bank of some hundred thousand is
// encoded once, and every row is a piece of it from a random place.
#include "tools/random_model.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "base/checked_math.h"
#include "base/json.h"
#include "formats/format_info.h"
#include "model/slots.h"

namespace tessera {
namespace {

constexpr int64_t kBankValues = 1 << 18;
constexpr uint32_t kSeed = 20260101;

struct Bank {
  int64_t columns = 0;  // of the rows it serves
  std::vector<std::byte> bytes;
};

uint64_t hash(uint64_t value) {  // the finaliser of splitmix64
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// Uniform with variance 1 / columns.
Result<Bank> make_bank(const Format& format, int64_t columns) {
  const int64_t block = format_block(format);
  if (columns % block != 0)
    return fail(ErrorCode::kInvalidArgument, "{}: expected rows of a multiple of {} values, found {}",
                format_name(format), block, columns);
  const int64_t count = static_cast<int64_t>(
      round_up(static_cast<uint64_t>(columns + kBankValues), static_cast<uint64_t>(block)));
  std::mt19937 random(kSeed);
  const float limit = std::sqrt(3.0f / static_cast<float>(columns));
  std::uniform_real_distribution<float> distribution(-limit, limit);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = distribution(random);
  Bank bank;
  bank.columns = columns;
  bank.bytes.resize(static_cast<size_t>(format_row_bytes(format, count)));
  TESSERA_TRY_STATUS(encode_rows(format, values.data(), 1, count, bank.bytes.data()));
  return bank;
}

// `rows` rows from random places of the bank; `number` tells matrices apart.
Weight fill_matrix(const Format& format, int64_t rows, const Bank& bank, uint64_t number, Buffer& buffer,
                   ThreadPool& threads) {
  const int64_t row_bytes = format_row_bytes(format, bank.columns);
  const int64_t block_bytes = format_row_bytes(format, format_block(format));
  const auto places =
      static_cast<uint64_t>((static_cast<int64_t>(bank.bytes.size()) - row_bytes) / block_bytes + 1);
  buffer = Buffer(static_cast<size_t>(rows * row_bytes));
  std::byte* const data = buffer.data();
  constexpr int64_t kRowsPerTask = 64;
  threads.run(ceil_divide(rows, kRowsPerTask), [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (int64_t row = task * kRowsPerTask; row < end; ++row) {
      const uint64_t place = hash(number << 32 ^ static_cast<uint64_t>(row)) % places;
      std::memcpy(data + row * row_bytes, bank.bytes.data() + static_cast<int64_t>(place) * block_bytes,
                  static_cast<size_t>(row_bytes));
    }
  });
  Weight weight;
  weight.format = format;
  weight.rows = rows;
  weight.columns = bank.columns;
  weight.planes[0] = {data, row_bytes};
  return weight;
}

// Small parameters at values that keep a model's numbers moderate: a positive decay would make states grow without bound.
float vector_value(const Slot& slot) {
  if (slot.suffix == ".bias") return 0.0f;
  return slot.name.ends_with(".decay") ? -0.5f : 1.0f;
}

Result<LoadedModel> without_weights(const Config& config) {
  TESSERA_TRY(LoadedSpec loaded, load_spec(config));
  LoadedModel model;
  model.architecture = loaded.architecture;
  model.spec = std::move(loaded.spec);
  model.defaults = std::move(loaded.defaults);
  model.warnings = std::move(loaded.warnings);
  return model;
}

// The slots that a random model fills: what may be absent is.
template <class Body>
Status for_slots(const ModelSpec& spec, const Body& body) {
  uint64_t number = 0;
  for (const Slot& slot : model_slots(spec)) {
    ++number;
    if (slot.presence == Presence::kIfPresent && slot.group != SlotGroup::kHead) continue;
    BoundSlot bound;
    bound.slot = slot;
    bound.source = "random";
    if (slot.role == SlotRole::kVector)
      bound.values.assign(static_cast<size_t>(slot.shape.elements()), vector_value(slot));
    TESSERA_TRY_STATUS(body(std::move(bound), number));
  }
  return {};
}

}  // namespace

Result<LoadedModel> random_model(const Config& config, const Format& format, ThreadPool& threads) {
  TESSERA_TRY(LoadedModel model, without_weights(config));
  std::vector<Bank> banks;
  TESSERA_TRY_STATUS(for_slots(model.spec, [&](BoundSlot bound, uint64_t number) -> Status {
    const Slot& slot = bound.slot;
    if (slot.role != SlotRole::kVector) {
      const Bank* bank = nullptr;
      for (const Bank& known : banks)
        if (known.columns == slot.shape.columns()) bank = &known;
      if (bank == nullptr) {
        Result<Bank> made = make_bank(format, slot.shape.columns());
        if (!made) return with_context(made.error(), slot.name);
        bank = &banks.emplace_back(*std::move(made));
      }
      Buffer buffer;
      const Weight all = fill_matrix(format, slot.shape.rows(), *bank, number, buffer, threads);
      if (slot.role == SlotRole::kExperts) {
        const int64_t each = all.rows / slot.shape.dims()[0];
        for (int64_t row = 0; row < all.rows; row += each) bound.parts.push_back(all.slice_rows(row, each));
      } else {
        bound.parts.push_back(all);
      }
      model.weights.own(std::move(buffer));
    }
    model.weights.add(std::move(bound));
    return {};
  }));
  return model;
}

Result<LoadedModel> outline_model(const Config& config, const Format& format) {
  TESSERA_TRY(LoadedModel model, without_weights(config));
  TESSERA_TRY_STATUS(for_slots(model.spec, [&](BoundSlot bound, uint64_t) -> Status {
    const Slot& slot = bound.slot;
    if (slot.role != SlotRole::kVector) {
      Weight weight;
      weight.format = format;
      weight.rows = slot.shape.rows();
      weight.columns = slot.shape.columns();
      weight.planes[0] = {nullptr, format_row_bytes(format, weight.columns)};
      if (slot.role == SlotRole::kExperts) {
        const int64_t experts = slot.shape.dims()[0];
        weight.rows /= experts;
        bound.parts.assign(static_cast<size_t>(experts), weight);
      } else {
        bound.parts.push_back(weight);
      }
    }
    model.weights.add(std::move(bound));
    return {};
  }));
  return model;
}

}  // namespace tessera
