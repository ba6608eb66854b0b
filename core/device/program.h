// SPDX-License-Identifier: Apache-2.0
// Program: the ordered steps of a net on a device, before memory is assigned.
//
// Layers emit operations; a device turns each into steps over tensors; Program tracks the versions
// (layout, number format, memory) in which a tensor exists and inserts a conversion where a step
// needs another one. Every tensor is written once, so the first write and the last read of each
// buffer are known, and plan/ can place all of them in one arena.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "core/tensor/version.h"

namespace cafetiere {

class Device;
class RunError;

/// Applies the solver's update to a net's parameters during a run of its plan.
class ParamUpdate {
 public:
  virtual ~ParamUpdate() = default;
  /// Updates a piece of a parameter, starting at its float `begin`, with the piece's gradient. Safe
  /// to call from several threads for different pieces; the result does not depend on how the
  /// parameter is divided.
  virtual void apply(size_t param, int64_t begin, std::span<const float> gradient) = 0;
};

/// The inputs that change between runs of a plan.
struct RunContext {
  uint64_t seed = 0;
  int shard = 0;             ///< the shard of the rows; state kept between batches is per shard
  int64_t sub_step = 0;      ///< step * iter_size + pass
  int64_t first_sample = 0;  ///< index of the batch's first row among all shards' rows
  float loss_scale = 1;      ///< this batch's share of the rows of the pass
  bool begins = false;       ///< state kept between batches is reset to zero, as in a first run
  bool accumulate = false;   ///< add to the parameter gradients instead of replacing them
  ParamUpdate* update = nullptr;  ///< for a plan that updates its parameters; null: they are
                                  ///< unchanged
  RunError* error = nullptr;      ///< receives the errors of kernels; set by the plan
};

using TensorId = int;
using BufferId = int;
inline constexpr TensorId kNoTensor = -1;
inline constexpr BufferId kNoBuffer = -1;

/// A bound operation. Its blocks are independent; their number depends on the shape, never on the
/// threads.
struct Kernel {
  int blocks = 1;
  std::function<void(int block)> run;
  /// Steps by rows only: processes rows [begin, end), whole blocks if Rows::block is set.
  std::function<void(int64_t begin, int64_t end)> run_rows = nullptr;
};

/// Describes a step that processes rows of its tensors independently: the elements of a pixel or,
/// if several images are innermost, each element. Steps over the same rows can run in one pass over
/// memory, block by block.
struct Rows {
  int64_t count = 0;   ///< 0: not a step by rows
  int64_t width = 1;   ///< floats
  int64_t block = 0;   ///< rows processed together, because their sums depend on it; 0: any number
  int64_t least = 1;   ///< rows that are worth processing together
  size_t reads = 0;    ///< the first `reads` of Step::reads are read by row, the others as a whole
  bool writes = true;  ///< whether its results are rows, as opposed to sums over rows
};

/// Provides the addresses of a step's buffers.
class Binder {
 public:
  Binder(const std::vector<void*>& addresses, const RunContext* run)
      : addresses_(addresses), run_(run) {}
  /// The address of a float buffer, the usual case.
  float* operator()(BufferId id) const { return as<float>(id); }
  /// The address of a buffer of another number format.
  template <class T>
  T* as(BufferId id) const {
    return static_cast<T*>(addresses_[static_cast<size_t>(id)]);
  }
  const RunContext* run() const { return run_; }
  /// Indexed by BufferId.
  const std::vector<void*>& addresses() const { return addresses_; }

 private:
  const std::vector<void*>& addresses_;
  const RunContext* run_;
};

/// Functions that the step before may apply to its results: x + y, and max(x, 0).
enum class Rule { kOther, kSum, kRelu };

/// How a step ends with the rules of the steps after it: its results, rounded, plus `addend`, then
/// max(., 0) if `relu`, written to `result`. All three have the version of its own result.
struct Ending {
  BufferId addend, result;
  bool relu;
};

/// A place for a result of a step: channels [first, ...) of a larger result of the same layout, whose
/// pixels are `channels` apart.
struct Part {
  BufferId whole;
  int64_t first, channels;
};

/// One operation on buffers.
struct Step {
  std::string name;    ///< "conv1 forward"
  std::string kernel;  ///< which implementation and why: "brgemm SCN (64 lanes)"
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  std::function<Kernel(const Binder&)> make;
  /// An alternative to `make` for a step that writes only the gradient of a parameter, given by its
  /// index in the net: passes the gradient in pieces to RunContext::update instead of writing it.
  /// Null: not available.
  std::function<Kernel(const Binder&, size_t param)> make_update;
  /// An alternative to `make` for a step with a single result, bitwise the same as applying the rules
  /// afterwards, but for the sign of a ReLU's zeros. Null: not available.
  std::function<Kernel(const Binder&, const Ending&)> make_ending;
  /// An alternative to `make` that writes the result, writes[0], as part of a larger one. Null: not
  /// available.
  std::function<Kernel(const Binder&, const Part&)> make_part;
  Rule rule = Rule::kOther;  ///< what a map computes from its reads
  /// A concatenation: the part that each read becomes. It copies only those whose buffer has memory.
  std::vector<Part> parts = {};
  int64_t unwritten = 0;  ///< bytes of its results that it leaves to other steps
  /// Where it runs: on the threads of the host, or in the queue of the device, whose memory then
  /// holds all of its buffers, except for a copy.
  Space space = Space::kHost;
  double flops = 0;
  /// The last so many writes have a null address if no step reads them.
  size_t optional = 0;
  /// writes[0] may share the memory of one of the first `in_place` reads that no later step reads.
  size_t in_place = 0;
  Rows rows = {};
  bool joined = false;  ///< runs in one pass with the previous step
  bool costly = false;  ///< takes longer to compute than memory takes to deliver its inputs
};

/// A region of memory. `external` ones belong to the caller (parameters, gradients, inputs).
struct Buffer {
  int64_t bytes = 0;
  Format format = Format::kFloat32;
  Space space = Space::kHost;
  bool external = false;
  bool keep = false;   ///< still readable after the run
  bool fixed = false;  ///< written by a hoisted step and read by others: valid for all runs
};

class Program {
 public:
  /// `device`, if given, must outlive the steps that run in its queue; without a device, all steps
  /// run on the host.
  explicit Program(Device* device = nullptr) : device_(device) {}

  /// Declares a tensor that a step will write.
  TensorId tensor(std::string name, Shape shape);
  /// A row-major tensor in the caller's memory, whose address is provided when the program is
  /// bound.
  TensorId external(std::string name, Shape shape);
  /// The same elements under another shape with the same batch axis; nothing is copied unless the
  /// tensor exists only in a layout that keeps the channels of a pixel together. Repeated calls
  /// return the same tensor, with the versions it has by then.
  TensorId reshaped(TensorId id, Shape shape);

  /// Valid as long as the program.
  const Shape& shape(TensorId id) const { return tensors_[size_t(id)].shape; }
  const std::string& name(TensorId id) const { return tensors_[size_t(id)].name; }
  /// The layout in which the tensor was first written.
  Layout layout(TensorId id) const { return first(id).layout; }
  /// The number format in which it was first written.
  Format format(TensorId id) const { return first(id).format; }
  /// The tensor for readers that need this format: the tensor itself, or a copy.
  TensorId in_format(TensorId id, Format format);

  /// The buffer with this version of the tensor; emits the conversions (a step each) that create it
  /// if it does not exist yet.
  BufferId read(TensorId id, Version version);
  /// The buffer into which the next step writes the tensor. An existing buffer, such as external
  /// memory, keeps its layout; if its format or memory differs from the version's, the step writes
  /// to a copy, which is then converted back.
  BufferId write(TensorId id, Version version);
  /// Memory for `count` numbers, live from the step that writes it to the last one that reads it.
  BufferId scratch(int64_t count, Format format = Format::kFloat32, Space space = Space::kHost);
  /// Makes the tensor readable, row-major, after the run.
  BufferId keep(TensorId id);
  /// Turns the caller's memory of external() into the program's own, live from the first step that
  /// uses it to the last one.
  void adopt(BufferId id) { buffers_[size_t(id)].external = false; }

  void step(Step step);
  /// States that the parameters stay what they are in the first run, so that copies of them pay in
  /// other layouts and formats.
  void fix_parameters() { parameters_are_fixed_ = true; }
  bool parameters_are_fixed() const { return parameters_are_fixed_; }
  /// Moves the host's steps that depend only on `constants`, directly or through such steps, to the
  /// front, since they need to run only once. Returns their number.
  size_t hoist(const std::vector<BufferId>& constants);
  /// Where the device runs a step that is implemented once for all devices; name and kernel must be
  /// set.
  Space space_of(const Step& step) const;
  /// Appends to the kernel description of the newest step of that name.
  void remark(const std::string& step, const std::string& text);

  const std::vector<Step>& steps() const { return steps_; }
  /// For passes over the whole program, which may reorder steps.
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  struct Stored {
    Version version;
    BufferId buffer;
  };
  struct Tensor {
    std::string name;
    Shape shape;
    std::vector<Stored> versions;
  };
  const Version& first(TensorId id) const { return tensors_[size_t(id)].versions.front().version; }
  /// Drops all but the first version of a tensor and of those that share its buffer, because their
  /// values are outdated.
  void drop_conversions(TensorId id);
  Step conversion(TensorId id, const Stored& from, const Stored& to) const;

  Device* device_;
  bool parameters_are_fixed_ = false;
  std::deque<Tensor>
      tensors_;  // addresses stay valid while it grows: shape() and name() return references
  std::multimap<BufferId, TensorId> views_;  // tensors and their reshaped() views, by shared buffer
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
  std::vector<std::pair<TensorId, Stored>>
      returning_;  // written by the next step, to be converted back
};

}  // namespace cafetiere
