// SPDX-License-Identifier: Apache-2.0
// The checks of the modes' settings.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/nearest.h"
#include "core/model/parse_text.h"
#include "core/sync/modes.h"
#include "core/sync/replicas.h"

namespace cafetiere {
namespace {

Status check_word(const char* field, const std::string& word,
                  const std::vector<std::string>& words) {
  if (std::ranges::find(words, word) != words.end()) return {};
  return invalid_argument(fmt::format("sync {{ {}: \"{}\" }}: it must be one of {}{}", field, word,
                                      fmt::join(words, ", "), did_you_mean(word, words)));
}

Status check_range(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(
      fmt::format("sync {{ {}: {:g} }}: it must be from {:g} to {:g}", field, value, low, high));
}

/// What would have no effect is refused.
Status check_transfer(const caffe::SyncParameter& sync) {
  if (sync.wire() == "float32" && sync.exchange() == "tree") return {};
  const bool compressed = sync.compression() != "none";
  if (find_sync_mode(sync.mode())->wire && !compressed) return {};
  return invalid_argument(
      fmt::format("sync {{ wire: \"{}\" exchange: \"{}\" }}: {} has a form and a way of its own; "
                  "leave both out, or use mode \"{}\" without compression",
                  sync.wire(), sync.exchange(),
                  compressed ? "compression" : fmt::format("mode \"{}\"", sync.mode()),
                  fmt::join(sync_mode_names(&SyncMode::wire), "\" or \"")));
}

}  // namespace

HistoryRule history_rule(const caffe::SyncParameter& sync) {
  if (sync.history() == "averaged") return HistoryRule::kAveraged;
  return sync.history() == "reset" ? HistoryRule::kReset : HistoryRule::kKept;
}

Status merge_sync(std::string_view text, const std::string& source, caffe::SyncParameter* sync) {
  const bool word = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  caffe::SyncParameter given;
  if (word) {
    given.set_mode(std::string(text));
  } else {
    CFT_TRY(parse_text(text, source, &given));
  }
  sync->MergeFrom(given);
  return check_sync(*sync).with_context(source);
}

Status merge_deepspark(std::string_view text, const std::string& source,
                       caffe::SyncParameter* sync) {
  caffe::DeepSparkParam given;
  CFT_TRY(parse_text(text, source, &given));
  sync->set_mode("easgd");
  sync->set_period(given.period());
  sync->set_moving_rate(given.moving_rate());
  sync->set_decay_rate(given.decay_rate());
  sync->set_decay_step(given.decay_step());
  sync->set_decay_limit(given.decay_limit());
  sync->set_server_factor(given.server_factor());
  sync->set_factor_decay_rate(given.factor_decay_rate());
  sync->set_factor_decay_step(given.factor_decay_step());
  sync->set_factor_decay_limit(given.factor_decay_limit());
  return check_sync(*sync).with_context(source);
}

Status check_sync(const caffe::SyncParameter& sync) {
  CFT_TRY(check_word("mode", sync.mode(), sync_mode_names()));
  CFT_TRY(check_word("history", sync.history(), {"kept", "averaged", "reset"}));
  CFT_TRY(check_word("wire", sync.wire(), {"float32", "bfloat16", "float16"}));
  CFT_TRY(check_word("exchange", sync.exchange(), {"tree", "ring"}));
  CFT_TRY(check_word("compression", sync.compression(), {"none", "powersgd", "topk"}));
  CFT_TRY(check_range("period", sync.period(), 1, 1e6));
  CFT_TRY(check_range("n_push", sync.n_push(), 0, 1e6));
  CFT_TRY(check_range("n_fetch", sync.n_fetch(), 0, 1e6));
  CFT_TRY(check_range("moving_rate", double(sync.moving_rate()), 0, 1));
  CFT_TRY(check_range("server_factor", double(sync.server_factor()), 0, 1e3));
  CFT_TRY(check_range("outer_rate", double(sync.outer_rate()), 0, 10));
  CFT_TRY(check_range("outer_momentum", double(sync.outer_momentum()), 0, 1));
  CFT_TRY(check_range("compression_rank", sync.compression_rank(), 1, 1024));
  CFT_TRY(check_range("compression_density", double(sync.compression_density()), 1e-6, 1));
  CFT_TRY(check_range("check_interval", sync.check_interval(), 0, 1e9));
  CFT_TRY(check_range("group_size", sync.group_size(), 0, 1e6));
  CFT_TRY(check_transfer(sync));
  if (sync.compression() == "none" || find_sync_mode(sync.mode())->compression) return {};
  return invalid_argument(
      fmt::format("sync {{ compression: \"{}\" }}: only gradients are compressed, and mode \"{}\" "
                  "sends none; use mode \"{}\"",
                  sync.compression(), sync.mode(),
                  fmt::join(sync_mode_names(&SyncMode::compression), "\" or \"")));
}

}  // namespace cafetiere
