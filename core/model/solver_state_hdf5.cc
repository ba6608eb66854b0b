// SPDX-License-Identifier: Apache-2.0
#include "core/model/solver_state_hdf5.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <utility>

#include "core/model/parse_text.h"
#include "core/model/stopping_proto.h"

namespace cafetiere {
namespace {

std::string path_of(const StateArray& array) {
  switch (array.kind) {
    case StateArray::kHistory:
      return fmt::format("history/{}", array.index);
    case StateArray::kReplica:
      return fmt::format("sync/replica/{}/{}", array.shard, array.index);
    case StateArray::kOuter:
      return fmt::format("sync/outer/{}", array.index);
  }
  return "";
}

constexpr char kTests[] = "stopping/tests", kBest[] = "stopping/best";

/// The tests of early stopping as the text of a StoppingState, which has all digits of its values.
Status write_tests(const StoppingTests& tests, Hdf5Writer* file) {
  caffe::StoppingState proto;
  tests_to_proto({tests.curve, {}}, &proto);
  std::string text;
  google::protobuf::TextFormat::PrintToString(proto, &text);
  CFT_TRY(file->string(kTests, text));
  return tests.best.empty() ? Status()
                            : file->floats(kBest, {int64_t(tests.best.size())}, tests.best);
}

Result<StoppingTests> read_tests(const Hdf5Reader& file) {
  CFT_ASSIGN(const std::string text, file.string(kTests));
  caffe::StoppingState proto;
  CFT_TRY(parse_text(text, kTests, &proto));
  StoppingTests tests = tests_from_proto(proto);
  if (std::ranges::count(file.datasets("stopping"), "best") == 0) return tests;
  CFT_ASSIGN(const Shape shape, file.claim(kBest));
  tests.best.resize(size_t(shape.count()));
  CFT_TRY(file.read(kBest, 0, tests.best));
  return tests;
}

class Hdf5State final : public StateSource {
 public:
  explicit Hdf5State(Hdf5Reader file) : file_(std::move(file)) {}

  Status open() {
    CFT_ASSIGN(outline.iter, file_.integer("iter"));
    CFT_ASSIGN(outline.learned_net, file_.string("learned_net"));
    CFT_ASSIGN(outline.current_step, file_.integer("current_step"));
    if (std::ranges::count(file_.datasets("/"), "precision") > 0) {
      CFT_ASSIGN(outline.precision, file_.string("precision"));
    }
    if (!file_.datasets("stopping").empty()) {
      CFT_ASSIGN(outline.stopping, read_tests(file_));
    }
    const size_t blobs = file_.datasets("history").size();
    for (size_t i = 0; i < blobs; ++i) {
      CFT_ASSIGN(Shape shape, file_.claim(path_of({StateArray::kHistory, i})));
      outline.history.push_back(std::move(shape));
    }
    if (file_.datasets("sync").empty()) return {};
    CFT_ASSIGN(outline.mode, file_.string("sync/mode"));
    const size_t replicas = file_.groups("sync/replica").size();
    for (size_t shard = 0; shard < replicas; ++shard) {
      const size_t kinds = file_.datasets(fmt::format("sync/replica/{}", shard)).size();
      std::vector<size_t>& floats = outline.replicas.emplace_back();
      for (size_t kind = 0; kind < kinds; ++kind) {
        CFT_TRY(claim({StateArray::kReplica, kind, shard}, &floats));
      }
    }
    const size_t outer = file_.datasets("sync/outer").size();
    for (size_t i = 0; i < outer; ++i) CFT_TRY(claim({StateArray::kOuter, i}, &outline.outer));
    return {};
  }

  Status read(const StateArray& array, size_t begin, std::span<float> out) override {
    return file_.read(path_of(array), begin, out);
  }

 private:
  /// The arrays of a group are named by their index, from 0.
  Status claim(const StateArray& array, std::vector<size_t>* floats) {
    CFT_ASSIGN(const Shape shape, file_.claim(path_of(array)));
    floats->push_back(size_t(shape.count()));
    return {};
  }

  Hdf5Reader file_;
};

Status write_array(StateSource& state, const StateArray& array, const Shape& shape,
                   Hdf5Writer* file) {
  return file->floats(path_of(array), shape, [&](size_t begin, std::span<float> out) {
    return state.read(array, begin, out);
  });
}

Status write_arrays(StateSource& state, StateArray array, const std::string& group,
                    const std::vector<size_t>& floats, Hdf5Writer* file) {
  CFT_TRY(file->group(group));
  for (array.index = 0; array.index < floats.size(); ++array.index) {
    CFT_TRY(write_array(state, array, {int64_t(floats[array.index])}, file));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<StateSource>> open_hdf5_state(Hdf5Reader file) {
  auto state = std::make_unique<Hdf5State>(std::move(file));
  CFT_TRY(state->open());
  return std::unique_ptr<StateSource>(std::move(state));
}

Status write_hdf5_state(StateSource& state, Hdf5Writer* file) {
  const StateOutline& o = state.outline;
  CFT_TRY(file->integer("iter", o.iter));
  CFT_TRY(file->string("learned_net", o.learned_net));
  CFT_TRY(file->integer("current_step", o.current_step));
  if (!o.precision.empty()) CFT_TRY(file->string("precision", o.precision));
  if (!o.stopping.curve.empty()) CFT_TRY(write_tests(o.stopping, file));
  CFT_TRY(file->group("history"));
  for (size_t i = 0; i < o.history.size(); ++i) {
    CFT_TRY(write_array(state, {StateArray::kHistory, i}, o.history[i], file));
  }
  if (o.mode.empty()) return {};
  CFT_TRY(file->string("sync/mode", o.mode));
  for (size_t shard = 0; shard < o.replicas.size(); ++shard) {
    CFT_TRY(write_arrays(state, {StateArray::kReplica, 0, shard},
                         fmt::format("sync/replica/{}", shard), o.replicas[shard], file));
  }
  return write_arrays(state, {StateArray::kOuter}, "sync/outer", o.outer, file);
}

}  // namespace cafetiere
