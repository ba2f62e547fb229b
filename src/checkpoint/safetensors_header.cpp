// See safetensors_header.h. Layout of a file: 8 bytes of header length (little endian), the header, the data.
// Header:
//   {"__metadata__": {string: string, ...},
//    name: {"dtype": "BF16", "shape": [4096, 1024], "data_offsets": [begin, end]}, ...}
// The tensors fill the data without gap or overlap.
#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "base/checked_math.h"
#include "base/json.h"
#include "checkpoint/printable.h"

namespace tessera {
namespace {

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(kLastDType); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (name == dtype_name(dtype)) return dtype;
  }
  return std::nullopt;
}

// The events both documents share: errors, and everything that neither expects.
class Events : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { return unexpected("a number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
  bool string(string_t&) override { return unexpected("a string"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool start_object(std::size_t) override { return unexpected("an object"); }
  bool end_object() override { return unexpected("the end of an object"); }
  bool start_array(std::size_t) override { return unexpected("an array"); }
  bool end_array() override { return unexpected("the end of an array"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    if (error_.empty()) error_ = fmt::format("not valid JSON near byte {}", position);
    return false;
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 protected:
  bool stop(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }
  // What the document is about at this point: "tensor x: shape".
  [[nodiscard]] virtual std::string place() const = 0;
  [[nodiscard]] virtual const char* expectation() const = 0;
  bool unexpected(const char* found) {
    return stop(fmt::format("{}: expected {}, found {}", place(), expectation(), found));
  }

 private:
  std::string error_;
};

class HeaderEvents final : public Events {
 public:
  explicit HeaderEvents(SafetensorsHeader& header) : header_(header) {}

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::kStart:
        state_ = State::kHeader;
        return true;
      case State::kTensor:
        state_ = State::kField;
        seen_ = {};
        return true;
      case State::kMetadata:
        state_ = State::kMetadataKey;
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool key(string_t& key) override {
    switch (state_) {
      case State::kHeader:
        if (!names_.insert(key).second)
          return stop(fmt::format("tensor {}: expected once, found twice", printable(key)));
        if (key == "__metadata__") {
          state_ = State::kMetadata;
          return true;
        }
        header_.entries.emplace_back().name = key;
        state_ = State::kTensor;
        return true;
      case State::kField:
        return start_field(key);
      default:  // kMetadataKey
        metadata_key_ = key;
        state_ = State::kMetadataValue;
        return true;
    }
  }

  bool end_object() override {
    switch (state_) {
      case State::kField:
        for (const Field field : {Field::kDtype, Field::kShape, Field::kOffsets})
          if (!seen_[static_cast<size_t>(field)])
            return stop(fmt::format("{}: {} is missing", place(), kFieldNames[static_cast<size_t>(field)]));
        state_ = State::kHeader;
        return true;
      case State::kMetadataKey:
        state_ = State::kHeader;
        return true;
      default:  // kHeader
        state_ = State::kEnd;
        return true;
    }
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadataValue) {
      if (!header_.metadata.emplace(metadata_key_, value).second)
        return stop(fmt::format("__metadata__: {}: expected once, found twice", printable(metadata_key_)));
      state_ = State::kMetadataKey;
      return true;
    }
    if (state_ != State::kFieldValue || field_ != Field::kDtype) return unexpected("a string");
    const std::optional<DType> dtype = dtype_from_name(value);
    if (!dtype) return stop(fmt::format("{}: dtype {} is not known", place(), printable(value)));
    entry().dtype = *dtype;
    state_ = State::kField;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::kFieldValue || field_ == Field::kDtype) return unexpected("an array");
    state_ = State::kNumbers;
    count_ = 0;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kNumbers) return unexpected("a number");
    const size_t limit = field_ == Field::kShape ? Shape::kMaxRank : 2;
    if (count_ == limit)
      return stop(fmt::format("{}: expected at most {} numbers, found more", place(), limit));
    if (value > static_cast<uint64_t>(INT64_MAX))
      return stop(fmt::format("{}: {} is too large", place(), value));
    numbers_[count_++] = static_cast<int64_t>(value);
    return true;
  }

  bool end_array() override {
    if (field_ == Field::kShape) {
      entry().shape = Shape(std::span(numbers_.data(), count_));
    } else {
      if (count_ != 2) return stop(fmt::format("{}: expected 2 numbers, found {}", place(), count_));
      entry().begin = static_cast<uint64_t>(numbers_[0]);
      entry().end = static_cast<uint64_t>(numbers_[1]);
    }
    state_ = State::kField;
    return true;
  }

 private:
  enum class State {
    kStart,
    kHeader,
    kTensor,
    kField,
    kFieldValue,
    kNumbers,
    kMetadata,
    kMetadataKey,
    kMetadataValue,
    kEnd
  };
  enum class Field { kDtype, kShape, kOffsets };
  static constexpr std::array<const char*, 3> kFieldNames = {"dtype", "shape", "data_offsets"};

  SafetensorsEntry& entry() { return header_.entries.back(); }

  bool start_field(const std::string& key) {
    for (size_t i = 0; i < kFieldNames.size(); ++i) {
      if (key != kFieldNames[i]) continue;
      if (seen_[i]) return stop(fmt::format("{}: {}: expected once, found twice", place(), key));
      seen_[i] = true;
      field_ = static_cast<Field>(i);
      state_ = State::kFieldValue;
      return true;
    }
    return stop(fmt::format("{}: expected dtype, shape and data_offsets, found {}", place(), printable(key)));
  }

  [[nodiscard]] std::string place() const override {
    switch (state_) {
      case State::kStart:
      case State::kHeader:
      case State::kEnd:
        return "header";
      case State::kMetadata:
      case State::kMetadataKey:
        return "__metadata__";
      case State::kMetadataValue:
        return "__metadata__: " + printable(metadata_key_);
      case State::kTensor:
      case State::kField:
        return "tensor " + printable(header_.entries.back().name);
      case State::kFieldValue:
      case State::kNumbers:
        return fmt::format("tensor {}: {}", printable(header_.entries.back().name),
                           kFieldNames[static_cast<size_t>(field_)]);
    }
    return {};
  }

  [[nodiscard]] const char* expectation() const override {
    switch (state_) {
      case State::kMetadataValue:
        return "a string";
      case State::kFieldValue:
        return field_ == Field::kDtype ? "a string" : "an array";
      case State::kNumbers:
        return "a number that is not negative";
      default:
        return "an object";
    }
  }

  SafetensorsHeader& header_;
  State state_ = State::kStart;
  Field field_ = Field::kDtype;
  std::array<bool, 3> seen_{};
  std::array<int64_t, Shape::kMaxRank> numbers_{};
  size_t count_ = 0;
  std::string metadata_key_;
  std::unordered_set<std::string> names_;
};

// {"metadata": anything, "weight_map": {name: file, ...}}
class IndexEvents final : public Events {
 public:
  explicit IndexEvents(std::vector<IndexedTensor>& tensors) : tensors_(tensors) {}
  [[nodiscard]] bool found_map() const { return found_map_; }

  bool null() override { return skips_value() || unexpected("null"); }
  bool boolean(bool) override { return skips_value() || unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return skips_value() || unexpected("a number"); }
  bool number_unsigned(number_unsigned_t) override { return skips_value() || unexpected("a number"); }
  bool number_float(number_float_t, const string_t&) override {
    return skips_value() || unexpected("a number");
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_map_) {
      tensors_.back().file = value;
      return true;
    }
    return skips_value() || unexpected("a string");
  }
  bool start_object(std::size_t) override {
    if (in_map_ && depth_ == 2) return unexpected("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0 || in_map_) return unexpected("an array");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& key) override {
    if (depth_ == 1) {
      in_map_ = key == "weight_map";
      if (in_map_ && found_map_) return stop("weight_map: expected once, found twice");
      found_map_ = found_map_ || in_map_;
    } else if (in_map_) {
      tensors_.push_back({key, {}});
    }
    return true;
  }

 private:
  [[nodiscard]] bool skips_value() const { return depth_ > 0 && !in_map_; }
  [[nodiscard]] std::string place() const override {
    if (!in_map_) return "index";
    return depth_ < 2 || tensors_.empty() ? "weight_map" : "weight_map: " + printable(tensors_.back().name);
  }
  [[nodiscard]] const char* expectation() const override { return depth_ == 2 ? "a file name" : "an object"; }

  std::vector<IndexedTensor>& tensors_;
  int depth_ = 0;
  bool in_map_ = false;
  bool found_map_ = false;
};

// Bytes of a tensor; nullopt when a product overflows, even one hidden by a zero dimension (Shape multiplies
// freely).
std::optional<uint64_t> tensor_bytes(const SafetensorsEntry& entry) {
  auto product = static_cast<uint64_t>(dtype_bits(entry.dtype));
  bool empty = false;
  for (const int64_t dim : entry.shape.dims()) {
    if (dim == 0) {
      empty = true;
      continue;
    }
    const auto next = checked_multiply(product, static_cast<uint64_t>(dim));
    if (!next || *next > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    product = *next;
  }
  return empty ? 0 : product / 8;
}

Status check_entry(const SafetensorsEntry& entry, uint64_t data_size, std::string_view what) {
  const auto describe = [&] { return fmt::format("{}: tensor {}", what, printable(entry.name)); };
  if (entry.begin > entry.end)
    return fail(ErrorCode::kBadData, "{}: data_offsets: expected begin <= end, found [{}, {}]", describe(),
                entry.begin, entry.end);
  if (entry.end > data_size)
    return fail(ErrorCode::kBadData, "{}: expected data up to byte {}, found {} bytes of data in the file",
                describe(), entry.end, data_size);
  if (entry.shape.columns() % 2 != 0 && dtype_bits(entry.dtype) % 8 != 0)
    return fail(ErrorCode::kBadData, "{}: expected rows of whole bytes, found shape {} of {}", describe(),
                entry.shape.to_string(), dtype_name(entry.dtype));
  const std::optional<uint64_t> bytes = tensor_bytes(entry);
  if (!bytes)
    return fail(ErrorCode::kBadData, "{}: shape {} of {} overflows", describe(), entry.shape.to_string(),
                dtype_name(entry.dtype));
  if (*bytes != entry.end - entry.begin)
    return fail(ErrorCode::kBadData, "{}: expected {} bytes for {} {}, found {} (data_offsets [{}, {}])",
                describe(), *bytes, dtype_name(entry.dtype), entry.shape.to_string(), entry.end - entry.begin,
                entry.begin, entry.end);
  return {};
}

Status check_contiguous(const std::vector<SafetensorsEntry>& entries, uint64_t data_size,
                        std::string_view what) {
  uint64_t expected = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != expected)
      return fail(ErrorCode::kBadData, "{}: tensor {}: {}: expected its data to start at {}, found {}", what,
                  printable(entry.name), entry.begin < expected ? "overlaps another" : "a gap before it",
                  expected, entry.begin);
    expected = entry.end;
  }
  if (expected != data_size)
    return fail(ErrorCode::kBadData, "{}: expected {} bytes of data, as its tensors need, found {}", what,
                expected, data_size);
  return {};
}

template <class Handler>
Status run_events(std::string_view text, std::string_view what, Handler& events) {
  (void)Json::sax_parse(text, &events);
  if (!events.error().empty()) return fail(ErrorCode::kBadData, "{}: {}", what, events.error());
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, uint64_t data_size,
                                                   std::string_view what) {
  SafetensorsHeader header;
  HeaderEvents events(header);
  TESSERA_TRY_STATUS(run_events(text, what, events));
  for (const SafetensorsEntry& entry : header.entries)
    TESSERA_TRY_STATUS(check_entry(entry, data_size, what));
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
            });
  TESSERA_TRY_STATUS(check_contiguous(header.entries, data_size, what));
  return header;
}

Result<std::vector<IndexedTensor>> parse_weight_map(std::string_view text, std::string_view what) {
  std::vector<IndexedTensor> tensors;
  IndexEvents events(tensors);
  TESSERA_TRY_STATUS(run_events(text, what, events));
  if (!events.found_map()) return fail(ErrorCode::kBadData, "{}: weight_map is missing", what);
  std::sort(tensors.begin(), tensors.end(), [](const IndexedTensor& a, const IndexedTensor& b) {
    return a.file != b.file ? a.file < b.file : a.name < b.name;
  });
  return tensors;
}

}  // namespace tessera
