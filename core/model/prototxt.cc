// SPDX-License-Identifier: Apache-2.0
#include "core/model/prototxt.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "core/model/dialects.h"
#include "core/model/file.h"
#include "core/model/nearest.h"
#include "core/model/parse_text.h"
#include "core/model/upgrade.h"

namespace cafetiere {
namespace {

namespace pb = google::protobuf;

constexpr size_t kMaxTextBytes = size_t{64} << 20;  // the largest published net text has 0.5 MB
constexpr int kMaxDepth = 32;                       // the schema itself nests 6 deep
constexpr size_t kMaxShownErrors = 5;
constexpr int kMaxEngines = 8;  // number of different unknown `engine` values

struct Position {
  int line = 0;  // both 0-based, as in protobuf
  int column = 0;
};

/// The double-quoted parts of a parser message, in order.
std::vector<std::string> quoted_parts(std::string_view message) {
  std::vector<std::string> parts;
  size_t open = message.find('"');
  while (open != std::string_view::npos) {
    const size_t close = message.find('"', open + 1);
    if (close == std::string_view::npos) break;
    parts.emplace_back(message.substr(open + 1, close - open - 1));
    open = message.find('"', close + 1);
  }
  return parts;
}

size_t offset_of(std::string_view text, Position at) {
  size_t offset = 0;
  for (int line = 0; line < at.line; ++line) offset = text.find('\n', offset) + 1;
  return std::min(offset + static_cast<size_t>(at.column), text.size());
}

/// The parser reports the position after an unknown name; this steps back to the name itself.
Position step_back_to(std::string_view text, Position at, std::string_view name) {
  const size_t found = text.rfind(name, offset_of(text, at));
  if (found == std::string_view::npos) return at;
  const std::string_view before = text.substr(0, found);
  const size_t newline = before.rfind('\n');
  const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          static_cast<int>(found - line_start)};
}

/// A suggestion for a field that `type` lacks: a similar name, or the sub-message that has it.
std::string suggest_field(const pb::Descriptor& type, const std::string& field) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::Descriptor* inner = type.field(i)->message_type();
    if (inner != nullptr && inner->FindFieldByName(field) != nullptr &&
        nearest_name(field, names).empty()) {
      return fmt::format("; {} has one: write {} {{ {}: ... }}", inner->name(),
                         type.field(i)->name(), field);
    }
  }
  return did_you_mean(field, names);
}

std::vector<std::string> enum_values(const std::string& field) {
  std::vector<std::string> names;
  const pb::FileDescriptor* file = caffe::NetParameter::descriptor()->file();
  for (int i = 0; i < file->message_type_count(); ++i) {
    const pb::FieldDescriptor* f = file->message_type(i)->FindFieldByName(field);
    if (f == nullptr || f->enum_type() == nullptr) continue;
    for (int v = 0; v < f->enum_type()->value_count(); ++v) {
      names.push_back(f->enum_type()->value(v)->name());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// The layer type last named before `offset`: that of the layer whose field is there.
std::string_view layer_type_before(std::string_view text, size_t offset) {
  constexpr std::string_view kQuotes = "'\"";
  for (size_t at = text.rfind("type", offset); at != std::string_view::npos && at > 0;
       at = text.rfind("type", at - 1)) {
    const size_t open = text.find_first_not_of(" \t:", at + 4);
    if (open == std::string_view::npos || kQuotes.find(text[open]) == std::string_view::npos) {
      continue;
    }
    const size_t close = text.find(text[open], open + 1);
    if (close != std::string_view::npos) return text.substr(open + 1, close - open - 1);
  }
  return {};
}

/// Collects the parser's errors, in our own wording, instead of printing them.
class Errors : public pb::io::ErrorCollector {
 public:
  Errors(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  void AddError(int line, int column, const std::string& message) override {
    Position at{std::max(line, 0), std::max(column, 0)};
    const std::string what = explain(message, &at);
    if (lines_.size() < kMaxShownErrors) {
      lines_.push_back(fmt::format("{}:{}:{}: {}", source_, at.line + 1, at.column + 1, what));
    }
  }
  /// A field that the schema lacks is a warning if it can be ignored, else an error.
  void AddWarning(int line, int column, const std::string& message) override {
    const std::string field = foreign_field(message);
    const std::string_view why = why_ignored(field);
    if (why.empty()) return AddError(line, column, message);
    if (!ignored_.insert(field).second) return;
    warnings_.push_back(
        fmt::format("{}:{}: {} is ignored: {}", source_, std::max(line, 0) + 1, field, why));
  }

  bool empty() const { return lines_.empty(); }
  /// The value of `engine` at which the parser stopped because the schema lacks it.
  const std::string& engine() const { return engine_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  Status status() const {
    return invalid_argument(lines_.empty() ? source_ + ": cannot be parsed"
                                           : fmt::format("{}", fmt::join(lines_, "\n")));
  }

 private:
  /// The field that a warning reports as missing from the schema.
  static std::string foreign_field(const std::string& message) {
    const std::vector<std::string> parts = quoted_parts(message);
    return message.starts_with("Message type ") && parts.size() >= 2 ? parts[1] : "";
  }

  /// Advice on a field that `type` lacks.
  std::string advise(const pb::Descriptor& type, const std::string& field, Position at) const {
    if (const std::string_view known = advice_on_field(type.name(), field); !known.empty()) {
      return fmt::format("; {}", known);
    }
    const std::string_view layer = layer_type_before(text_, offset_of(text_, at));
    if (const std::string_view known = advice_on_type(layer); !known.empty()) {
      return fmt::format("; {}: {}", layer, known);
    }
    return suggest_field(type, field);
  }

  std::string explain(const std::string& message, Position* at) {
    const std::vector<std::string> parts = quoted_parts(message);
    if (message.starts_with("Message type ") && parts.size() >= 2) {
      const pb::Descriptor* type =
          pb::DescriptorPool::generated_pool()->FindMessageTypeByName(parts[0]);
      if (type != nullptr) {
        *at = step_back_to(text_, *at, parts[1]);
        return fmt::format("{} has no field \"{}\"{}", type->name(), parts[1],
                           advise(*type, parts[1], *at));
      }
    }
    if (message.starts_with("Unknown enumeration value") && parts.size() >= 2) {
      if (parts[1] == "engine") engine_ = parts[0];
      *at = step_back_to(text_, *at, parts[0]);
      return fmt::format("{} cannot be \"{}\"; it is one of {}", parts[1], parts[0],
                         fmt::join(enum_values(parts[1]), ", "));
    }
    if (message.ends_with("got: ")) {
      return "the text ends too early: a value or a closing brace is missing";
    }
    if (message.starts_with("Expected integer, got: ")) {
      return message + "; if this is a template, run its generator";
    }
    return message;
  }

  std::string_view text_;
  const std::string& source_;
  std::string engine_;
  std::vector<std::string> lines_, warnings_;
  std::set<std::string> ignored_;
};

/// The 1-based line where entry `index` of a repeated field of the outermost message begins.
int line_of(const pb::TextFormat::ParseInfoTree& tree, const pb::FieldDescriptor* field,
            int index) {
  return tree.GetLocation(field, index).line + 1;
}

/// The text with unknown values of `engine` replaced by a number, at unchanged positions.
std::string without_engine(std::string_view text, const std::string& engine) {
  std::string result(text);
  for (size_t at = result.find(engine); at != std::string::npos; at = result.find(engine, at + 1)) {
    const size_t before = at == 0 ? at : result.find_last_not_of(" \t\r\n:", at - 1);
    constexpr std::string_view kField = "engine";
    if (before == std::string::npos || before + 1 < kField.size()) continue;
    if (result.compare(before + 1 - kField.size(), kField.size(), kField) != 0) continue;
    std::fill_n(result.begin() + static_cast<std::ptrdiff_t>(at), engine.size(), ' ');
    result[at] = '0';
  }
  return result;
}

/// Whether a text, which cannot be read, is rather the name of a file.
bool is_path(std::string_view text) {
  constexpr size_t kLongest = 1000;
  return text.size() <= kLongest && text.find_first_of(" \t\r\n{\"") == std::string_view::npos &&
         (text.ends_with(".prototxt") || text.ends_with(".onnx") ||
          text.find('/') != std::string_view::npos);
}

Status check_text(std::string_view text, const std::string& source) {
  if (text.size() > kMaxTextBytes) {
    return invalid_argument(fmt::format("{}: has {} bytes of text; the limit is {}", source,
                                        text.size(), kMaxTextBytes));
  }
  if (text.find('\0') != std::string_view::npos) {
    return invalid_argument(
        source + ": is not text; weights (.caffemodel) are given separately from the net");
  }
  if (is_path(text)) {
    const char* const advice = text.ends_with(".onnx")
                                   ? "read the model with import_onnx (docs/onnx.md), which makes "
                                     "a net's text and weights of it"
                                   : "give the text of that file";
    return invalid_argument(fmt::format("{}: \"{}\" seems to be a path; {}", source, text, advice));
  }
  return {};
}

/// Adds ignored fields to `warnings`; sets `tree` to the locations of the fields.
Status parse_text(std::string text, const std::string& source, pb::Message* message,
                  std::unique_ptr<pb::TextFormat::ParseInfoTree>* tree,
                  std::vector<std::string>* warnings) {
  CFT_TRY(check_text(text, source));
  // The parser stops at an unknown enum value, so it is restarted for each engine of a fork.
  for (int engines = 0;; ++engines) {
    Errors errors(text, source);
    *tree = std::make_unique<pb::TextFormat::ParseInfoTree>();
    message->Clear();
    pb::TextFormat::Parser parser;
    parser.RecordErrorsTo(&errors);
    parser.WriteLocationsTo(tree->get());
    parser.SetRecursionLimit(kMaxDepth);
    parser.AllowPartialMessage(true);  // missing fields are reported below, without aborting
    parser.AllowUnknownField(true);    // Errors decides which of them may be ignored
    if (parser.ParseFromString(text, message) && errors.empty()) {
      warnings->insert(warnings->end(), errors.warnings().begin(), errors.warnings().end());
      break;
    }
    if (errors.engine().empty() || engines == kMaxEngines) return errors.status();
    warnings->push_back(fmt::format("{}: engine: {} is ignored: {}", source, errors.engine(),
                                    why_ignored("engine")));
    text = without_engine(text, errors.engine());
  }
  if (!message->IsInitialized()) {
    return invalid_argument(fmt::format("{}: required fields are missing: {}", source,
                                        message->InitializationErrorString()));
  }
  return {};
}

/// Upgrades the nets embedded in a solver.
Status upgrade_inline_nets(SolverText* solver) {
  std::vector<caffe::NetParameter*> nets;
  if (solver->param.has_net_param()) nets.push_back(solver->param.mutable_net_param());
  if (solver->param.has_train_net_param()) nets.push_back(solver->param.mutable_train_net_param());
  for (auto& net : *solver->param.mutable_test_net_param()) nets.push_back(&net);
  for (caffe::NetParameter* net : nets) {
    auto upgrade = upgrade_net(net);
    if (!upgrade.ok()) return upgrade.status().with_context(solver->source);
    std::move(upgrade->notes.begin(), upgrade->notes.end(), std::back_inserter(solver->notes));
  }
  return {};
}

}  // namespace

Status parse_text(std::string_view text, const std::string& source, pb::Message* message) {
  std::unique_ptr<pb::TextFormat::ParseInfoTree> tree;
  std::vector<std::string> warnings;
  return parse_text(std::string(text), source, message, &tree, &warnings);
}

Result<NetText> parse_net(std::string_view text, std::string source) {
  NetText net;
  net.source = std::move(source);
  std::unique_ptr<pb::TextFormat::ParseInfoTree> tree;
  CFT_TRY(parse_text(std::string(text), net.source, &net.param, &tree, &net.warnings));

  const pb::Descriptor* type = caffe::NetParameter::descriptor();
  const bool old_form = net.param.layers_size() > 0;
  const pb::FieldDescriptor* list = type->FindFieldByName(old_form ? "layers" : "layer");
  const int input_line =
      net.param.input_size() > 0 ? line_of(*tree, type->FindFieldByName("input"), 0) : 1;
  auto upgrade = upgrade_net(&net.param);
  if (!upgrade.ok()) return upgrade.status().with_context(net.source);
  for (int index : upgrade->origin) {
    net.layer_lines.push_back(index < 0 ? input_line : line_of(*tree, list, index));
  }
  net.notes = std::move(upgrade->notes);
  return net;
}

Result<NetText> read_net(const std::string& path) {
  CFT_ASSIGN(const std::string text, read_file(path));
  return parse_net(text, path);
}

Result<SolverText> parse_solver(std::string_view text, std::string source) {
  SolverText solver;
  solver.source = std::move(source);
  std::unique_ptr<pb::TextFormat::ParseInfoTree> tree;
  CFT_TRY(parse_text(std::string(text), solver.source, &solver.param, &tree, &solver.warnings));
  if (solver.param.has_solver_type()) solver.notes.push_back("replaced solver_type by type");
  CFT_TRY(upgrade_solver(&solver.param).with_context(solver.source));
  CFT_TRY(upgrade_inline_nets(&solver));
  return solver;
}

Result<SolverText> read_solver(const std::string& path) {
  CFT_ASSIGN(const std::string text, read_file(path));
  return parse_solver(text, path);
}

std::string to_text(const pb::Message& message) {
  std::string text;
  pb::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace cafetiere
