// SPDX-License-Identifier: Apache-2.0
// Events: what a run tells while it goes on, and who may listen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"

namespace cafetiere {

/// Named scalars in the order the net gives them.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// The ranks' times since the last event, a number for each rank in their order.
struct RankTimes {
  std::vector<double> step_ms;    ///< of a step, without the waits for other ranks
  std::vector<double> wait_data;  ///< share of the time, 0..1
  std::vector<double> wait_comm;  ///< the same for other ranks
};

/// Where a run stands.
struct Progress {
  int64_t step = 0;
  int64_t max_iter = 0;
  double epoch = 0;  ///< epochs finished, with the share of the current one
  double loss = 0;   ///< global training loss, averaged as the solver's average_loss says
  double lr = 0;
  double rows_per_s = 0;   ///< over all ranks, since the last event
  double wait_data = 0;    ///< share of the time since the last event spent waiting for rows, 0..1
  double wait_comm = 0;    ///< the same for other ranks
  double seconds = 0;      ///< since the run began
  int64_t first_step = 0;  ///< the step that the run began with
  NamedValues outputs;     ///< further training outputs, such as accuracy; may be empty
  RankTimes ranks = {};    ///< empty where ranks do not report together
};

/// What a pass over a test net gave.
struct TestResult {
  int64_t step = 0;
  std::string net;
  NamedValues outputs;
};

/// A message for the reader.
struct LogMessage {
  LogLevel level = LogLevel::kInfo;
  std::string text;
};

/// What a run is about to do: the text of `cafetiere explain`, at its begin.
struct Explained {
  std::string text;
};

/// A rank's part of an account.
struct RankAccount {
  std::string name;        ///< "rank 0", with the executor where there is one
  NamedValues core_hours;  ///< by activity
};

/// What the cores that a run had were used for, at its end.
struct Account {
  double seconds = 0;                   ///< on the clock
  int64_t cores = 0;                    ///< of all ranks
  NamedValues core_hours;               ///< by activity; they add up to cores x seconds
  int64_t rows_used = 0;                ///< the same one again in each epoch
  double cost = 0;                      ///< 0 without a price
  std::vector<RankAccount> ranks = {};  ///< may be empty
};

/// How far a training of a net for each key is.
struct KeysTrained {
  int64_t keys = 0;       ///< that have ended, with a net or without
  int64_t tasks = 0;      ///< that have ended
  int64_t of = 0;         ///< of so many
  double seconds = 0;     ///< since the training began
  double keys_per_s = 0;  ///< over all of it
};

using Event = std::variant<Progress, TestResult, LogMessage, Account, Explained, KeysTrained>;

/// One JSON object without a line end, as include/cafetiere/c_api.h documents it. Numbers that JSON
/// cannot hold (NaN, infinity) become null.
std::string to_json(const Event& event);

/// The reverse of to_json; null reads as NaN, an absent number as zero.
Result<Event> parse_event(std::string_view json);

/// Short names for the test nets of a run: "test" for the first one met, which most often is the
/// only one, "test <net>" for others.
class TestNames {
 public:
  std::string of(const std::string& net);

 private:
  std::optional<std::string> first_;
};

/// Receives the events of one run, in order, on one thread.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void progress(const Progress& p) { other(p); }
  virtual void test(const TestResult& t) { other(t); }
  virtual void log(const LogMessage& m) { other(m); }
  virtual void account(const Account& a) { other(a); }
  virtual void explained(const Explained& e) { other(e); }
  virtual void keys(const KeysTrained& k) { other(k); }
  /// An event whose own function is not overridden.
  virtual void other(const Event&) {}

  /// Calls the function for this kind of event.
  void send(const Event& event);
};

/// Hands every event to several sinks.
class Broadcast : public EventSink {
 public:
  void add(std::unique_ptr<EventSink> sink) { sinks_.push_back(std::move(sink)); }

  void other(const Event& event) override {
    for (const auto& sink : sinks_) sink->send(event);
  }

 private:
  std::vector<std::unique_ptr<EventSink>> sinks_;
};

}  // namespace cafetiere
