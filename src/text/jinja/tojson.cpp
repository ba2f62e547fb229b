// tojson as transformers sets it up: Python's json.dumps with ensure_ascii off, keys in their order, ", " and ": "
// between, and no HTML escapes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/filters.h"
#include "text/jinja/number_text.h"
#include "text/unicode.h"

namespace tessera::jinja {
namespace {

struct Layout {
  bool ascii = false;
  bool indented = false;
  bool sorted = false;
  MarkedText indent;
  MarkedText item = MarkedText(", ");
  MarkedText key = MarkedText(": ");
};

class Writer {
 public:
  Writer(Interpreter& interpreter, Layout layout) : interpreter_(interpreter), layout_(std::move(layout)) {}

  MarkedText take() { return std::move(out_); }

  Status write(const Value& value, int depth) {
    TESSERA_TRY_STATUS(interpreter_.budget().spend_steps(1));
    TESSERA_TRY_STATUS(interpreter_.budget().spend_bytes(16));
    switch (value.kind()) {
      case Kind::kNone:
        out_.append("null", Origin::kTemplate);
        return {};
      case Kind::kBool:
        out_.append(value.as_bool() ? "true" : "false", Origin::kTemplate);
        return {};
      case Kind::kInt:
      case Kind::kFloat:
        out_.append(number(value), value.origin());
        return {};
      case Kind::kText:
        return string(value.as_text());
      case Kind::kSequence:
        if (value.as_sequence().kind == SequenceKind::kList ||
            value.as_sequence().kind == SequenceKind::kTuple)
          return list(value.as_sequence().items, depth);
        break;
      case Kind::kDict:
        return dict(value.as_dict(), depth);
      default:
        break;
    }
    return fail(ErrorCode::kBadData, "Object of type {} is not JSON serializable", type_name(value));
  }

 private:
  static std::string number(const Value& value) {
    if (value.is_integral()) return fmt::format("{}", value.as_integer());
    const double real = value.as_number();
    if (std::isnan(real)) return "NaN";
    if (std::isinf(real)) return real < 0 ? "-Infinity" : "Infinity";
    return python_float(real);
  }

  Status string(const MarkedText& text) {
    TESSERA_TRY_STATUS(interpreter_.budget().spend_bytes(text.size()));
    const std::string& bytes = text.bytes();
    out_.append("\"", Origin::kTemplate);
    size_t done = 0;
    for (size_t at = 0; at < bytes.size();) {
      const unicode::Character c = unicode::decode(bytes, at);
      std::string escaped;
      if (c.code == '"' || c.code == '\\') {
        escaped = std::string("\\") + static_cast<char>(c.code);
      } else if (c.code < 0x20) {
        constexpr std::string_view kShort = "\bb\tt\nn\ff\rr";
        const size_t found = kShort.find(static_cast<char>(c.code));
        escaped = found != std::string_view::npos ? std::string("\\") + kShort[found + 1]
                                                  : fmt::format("\\u{:04x}", static_cast<uint32_t>(c.code));
      } else if (c.code >= 0x80 && layout_.ascii) {
        const auto code = static_cast<uint32_t>(c.code);
        escaped = code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                 : fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                                               0xdc00 + ((code - 0x10000) & 0x3ff));
      }
      if (!escaped.empty()) {
        out_.append(text, done, at);
        out_.append(escaped, text.origin_at(at));
        done = at + c.length;
      }
      at += c.length;
    }
    out_.append(text, done, bytes.size());
    out_.append("\"", Origin::kTemplate);
    return {};
  }

  Status line(int depth) {
    if (!layout_.indented) return {};
    TESSERA_TRY_STATUS(
        interpreter_.budget().spend_bytes(1 + static_cast<uint64_t>(depth) * layout_.indent.size()));
    out_.append("\n", Origin::kTemplate);
    for (int i = 0; i < depth; ++i) out_.append(layout_.indent);
    return {};
  }

  Status list(const std::vector<Value>& items, int depth) {
    out_.append("[", Origin::kTemplate);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.append(layout_.item);
      TESSERA_TRY_STATUS(line(depth + 1));
      TESSERA_TRY_STATUS(write(items[i], depth + 1));
    }
    if (!items.empty()) TESSERA_TRY_STATUS(line(depth));
    out_.append("]", Origin::kTemplate);
    return {};
  }

  Status key(const Value& key) {
    switch (key.kind()) {
      case Kind::kText:
        return string(key.as_text());
      case Kind::kNone:
        return string(MarkedText("null"));
      case Kind::kBool:
        return string(MarkedText(key.as_bool() ? "true" : "false"));
      case Kind::kInt:
      case Kind::kFloat:
        return string(MarkedText(number(key), key.origin()));
      default:
        return fail(ErrorCode::kBadData, "keys must be str, int, float, bool or None, not {}",
                    type_name(key));
    }
  }

  Status dict(const Dict& dict, int depth) {
    std::vector<const std::pair<Value, Value>*> rows;
    for (const auto& row : dict.items) rows.push_back(&row);
    if (layout_.sorted) {
      for (const auto& row : dict.items)
        if (!row.first.is(Kind::kText))
          return fail(ErrorCode::kUnsupported, "sort_keys with keys that are no strings");
      std::sort(rows.begin(), rows.end(),
                [](const auto* a, const auto* b) { return a->first.bytes() < b->first.bytes(); });
    }
    out_.append("{", Origin::kTemplate);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i > 0) out_.append(layout_.item);
      TESSERA_TRY_STATUS(line(depth + 1));
      TESSERA_TRY_STATUS(key(rows[i]->first));
      out_.append(layout_.key);
      TESSERA_TRY_STATUS(write(rows[i]->second, depth + 1));
    }
    if (!rows.empty()) TESSERA_TRY_STATUS(line(depth));
    out_.append("}", Origin::kTemplate);
    return {};
  }

  Interpreter& interpreter_;
  Layout layout_;
  MarkedText out_;
};

}  // namespace

Result<Value> filter_tojson(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(
      const BoundArguments bound,
      BoundArguments::bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, "tojson"));
  Layout layout;
  layout.ascii = bound.flag(0, false);
  layout.sorted = bound.flag(3, false);
  if (bound.present(1) && !bound[1].is(Kind::kNone)) {
    layout.indented = true;
    layout.item = MarkedText(",");
    if (bound[1].is(Kind::kText)) {
      layout.indent = bound[1].as_text();
    } else {
      TESSERA_TRY(const int64_t width, bound.integer(1, 0));
      if (width > 1000) return fail(ErrorCode::kResourceLimit, "tojson: an indent of {}", width);
      layout.indent = MarkedText(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
    }
  }
  if (bound.present(2) && !bound[2].is(Kind::kNone)) {
    TESSERA_TRY(const std::vector<Value> both, interpreter.iterate(bound[2]));
    if (both.size() != 2 || !both[0].is(Kind::kText) || !both[1].is(Kind::kText))
      return fail(ErrorCode::kBadData, "tojson: separators: expected two strings");
    layout.item = both[0].as_text();
    layout.key = both[1].as_text();
  }
  Writer writer(interpreter, std::move(layout));
  TESSERA_TRY_STATUS(writer.write(input, 0));
  return interpreter.make_text(writer.take());
}

}  // namespace tessera::jinja
