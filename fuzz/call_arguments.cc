// SPDX-License-Identifier: Apache-2.0
#include "fuzz/call_arguments.h"

#include <cstring>
#include <iterator>
#include <limits>

namespace cafetiere::fuzz {
namespace {

#define CFT_FUZZ_NET                                                                     \
  "\"layer { name: 'in' type: 'MemoryData' top: 'data' top: 'label' memory_data_param {" \
  " batch_size: 2 channels: 2 height: 1 width: 1 } } layer { name: 'ip' type:"           \
  " 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 2"         \
  " weight_filler { type: 'xavier' } } } layer { name: 'loss' type: 'SoftmaxWithLoss'"   \
  " bottom: 'ip' bottom: 'label' top: 'loss' }\""
#define CFT_FUZZ_SOLVER \
  "\"base_lr: 0.1 lr_policy: 'fixed' max_iter: 2 random_seed: 1 snapshot_after_train: false\""
#define CFT_FUZZ_SCHEMA                                                           \
  "{\"columns\": [{\"name\": \"data\", \"type\": \"f32\"}, {\"name\": \"label\"," \
  " \"type\": \"i32\"}], \"id\": \"\"}"

/// Options that some function takes.
constexpr const char* kOptions[] = {
    "{}",
    "{\"net\": " CFT_FUZZ_NET "}",
    "{\"solver\": " CFT_FUZZ_SOLVER ", \"net\": " CFT_FUZZ_NET "}",
    "{\"solver\": " CFT_FUZZ_SOLVER ", \"net\": " CFT_FUZZ_NET ", \"sync\": \"average\"}",
    "{\"solver\": " CFT_FUZZ_SOLVER ", \"net\": " CFT_FUZZ_NET
    ", \"sync\": \"diloco\","
    " \"shards\": 3}",
    "{\"net\": " CFT_FUZZ_NET ", \"schema\": " CFT_FUZZ_SCHEMA "}",
    "{\"net\": " CFT_FUZZ_NET ", \"shapes\": {\"data\": [1, 2, 1, 1]}}",
    "{\"text\": " CFT_FUZZ_NET ", \"phase\": \"TRAIN\"}",
    "{\"text\": \"base_lr: 0.1 lr_policy: 'fixed' max_iter: 2 snapshot_prefix: '/dev/null/x'"
    " net_param { layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2"
    " } } } layer { name: 'l' type: 'Reduction' bottom: 'x' top: 'l' loss_weight: 1 } }\"}",
    CFT_FUZZ_SCHEMA,
    "{\"secret\": \"sixteen bytes at least\"}",
    "[]",
    "{\"event\": \"log\", \"level\": \"info\", \"text\": \"t\"}\n",
    "in",
    "/dev/null/x",
};

/// Whether what the text asks for may be made: not a net of any size, a file or a socket of any name.
bool is_harmless(const std::string& text) {
  for (const char* word : {"layer", "event", "bind", "path", "prefix", "source", "/", "\\u"}) {
    if (text.find(word) != std::string::npos) return false;
  }
  return true;
}

}  // namespace

CallArguments::~CallArguments() {
  std::apply(
      [](auto&... slots) {
        const auto all = [](auto& objects) {
          for (auto* object : objects) destroy(object);
        };
        (all(slots), ...);
      },
      objects_);
}

std::string_view CallArguments::take(size_t count) {
  const std::string_view taken = left_.substr(0, count);
  left_.remove_prefix(taken.size());
  return taken;
}

uint8_t CallArguments::byte() {
  const std::string_view one = take(1);
  return one.empty() ? 0 : uint8_t(one[0]);
}

int64_t CallArguments::number() {
  constexpr int64_t kNumbers[] = {-1,
                                  0,
                                  1,
                                  2,
                                  3,
                                  6,
                                  64,
                                  1 << 20,
                                  std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::min()};
  const uint8_t which = byte();
  if (which < std::size(kNumbers)) return kNumbers[which];
  if (which < 128) return which;
  int64_t any = 0;
  const std::string_view bytes = take(sizeof any);
  std::memcpy(&any, bytes.data(), bytes.size());
  return any;
}

const char* CallArguments::text() {
  const uint8_t which = byte();
  if (which == 0xff) return nullptr;
  if (which < 128) return kOptions[which % std::size(kOptions)];
  std::string given(take(byte()));
  if (!is_harmless(given)) return "";
  return texts_.emplace_back(std::move(given)).c_str();
}

std::string_view CallArguments::bytes() {
  const uint8_t which = byte();
  if (which < given_.size()) return given_[which];
  if (which < 128) return {};
  const size_t high = byte(), low = byte();
  return texts_.emplace_back(take(high << 8 | low));
}

void CallArguments::keep_bytes(void* bytes, uint64_t size) {
  constexpr size_t kMost = 16;
  if (bytes && given_.size() < kMost) {
    given_.reserve(kMost);  // what was drawn stays where it is
    given_.emplace_back(static_cast<const char*>(bytes), size);
  }
  cft_free(bytes);
}

void destroy(cft_row_budget* budget) { cft_row_budget_destroy(budget); }
void destroy(cft_rows* rows) { cft_rows_destroy(rows); }
void destroy(cft_group* group) { cft_group_destroy(group); }
void destroy(cft_trainer* trainer) { cft_trainer_destroy(trainer); }
void destroy(cft_replica* replica) { cft_replica_destroy(replica); }
void destroy(cft_rounds* rounds) { cft_rounds_destroy(rounds); }
void destroy(cft_predictor* predictor) { cft_predictor_destroy(predictor); }
void destroy(cft_net* net) { cft_net_destroy(net); }
void destroy(cft_solver* solver) { cft_solver_destroy(solver); }

}  // namespace cafetiere::fuzz
