// SPDX-License-Identifier: Apache-2.0
// Program: the ordered steps of a net on a device, before memory is assigned.
//
// Layers emit operations; a device turns each into steps over tensors; Program remembers in which
// versions (layout, number format, memory) a tensor exists and inserts a conversion where a step wants
// another one. Every tensor is written once, so the first write and the last read of each buffer are
// known, and plan/ can place all of them in one arena.
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

/// Takes the solver's step of a net's parameters, within a run of its plan.
class ParamUpdate {
 public:
  virtual ~ParamUpdate() = default;
  /// Steps a piece of a parameter, which begins at its float `begin`, by the piece's gradient. Safe to
  /// call from several threads on different pieces; the result does not depend on how they are cut.
  virtual void apply(size_t param, int64_t begin, std::span<const float> gradient) = 0;
};

/// What changes from run to run of the same plan.
struct RunContext {
  uint64_t seed = 0;
  int shard = 0;             ///< whose rows these are: state from batch to batch is kept by shard
  int64_t sub_step = 0;      ///< step * iter_size + pass
  int64_t first_sample = 0;  ///< index of the batch's first row among all shards' rows
  float loss_scale = 1;      ///< this batch's share of the rows of the pass
  bool begins = false;       ///< what is kept from batch to batch is zero, as in a first run
  bool accumulate = false;   ///< add to the parameter gradients instead of replacing them
  ParamUpdate* update = nullptr;  ///< of a plan that steps its parameters; null: they stay
  RunError* error = nullptr;      ///< where a kernel that fails reports why; set by the plan
};

using TensorId = int;
using BufferId = int;
inline constexpr TensorId kNoTensor = -1;

/// A bound operation. Its blocks are independent and fixed by shape, never by the thread count.
struct Kernel {
  int blocks = 1;
  std::function<void(int block)> run;
  /// Of a step by rows: does rows [begin, end), which are whole blocks where Rows::block says so.
  std::function<void(int64_t begin, int64_t end)> run_rows = nullptr;
};

/// What is said of a step that treats the rows of its tensors apart: the elements at a pixel or, where
/// several images are innermost, each element. Steps over the same rows can be done in one pass over
/// memory, block by block.
struct Rows {
  int64_t count = 0;   ///< 0: not a step of this kind
  int64_t width = 1;   ///< floats
  int64_t block = 0;   ///< rows that it takes at a time, as their sums depend on it; 0: any
  size_t reads = 0;    ///< so many of Step::reads are read by row, the others as a whole
  bool writes = true;  ///< whether its results are rows, not sums of rows
};

/// Gives a step's buffers their addresses.
class Binder {
 public:
  Binder(const std::vector<void*>& addresses, const RunContext* run)
      : addresses_(addresses), run_(run) {}
  /// Of a buffer of floats, which most are.
  float* operator()(BufferId id) const { return as<float>(id); }
  /// Of a buffer of another number format.
  template <class T>
  T* as(BufferId id) const {
    return static_cast<T*>(addresses_[static_cast<size_t>(id)]);
  }
  const RunContext* run() const { return run_; }
  /// By BufferId.
  const std::vector<void*>& addresses() const { return addresses_; }

 private:
  const std::vector<void*>& addresses_;
  const RunContext* run_;
};

/// One operation on buffers.
struct Step {
  std::string name;    ///< "conv1 forward"
  std::string kernel;  ///< which implementation and why: "brgemm SCN (64 lanes)"
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  std::function<Kernel(const Binder&)> make;
  /// The same for a step that writes only the gradient of a parameter, by its index in the net: its
  /// pieces go to RunContext::update, and nowhere else. Null: the step has no such form.
  std::function<Kernel(const Binder&, size_t param)> make_update;
  /// Where it runs: on the threads of the host, or in the queue of the device, whose memory all of its
  /// buffers but those of a copy are in.
  Space space = Space::kHost;
  double flops = 0;
  /// writes[0] may take the memory of reads[in_place] when no later step reads it.
  int in_place = -1;
  Rows rows = {};
  bool joined = false;  ///< runs in one pass with the step before it
};

/// A region of memory. `external` ones belong to the caller (parameters, gradients, inputs).
struct Buffer {
  int64_t bytes = 0;
  Format format = Format::kFloat32;
  Space space = Space::kHost;
  bool external = false;
  bool keep = false;   ///< still readable after the run
  bool fixed = false;  ///< written by a hoisted step, read by others: holds for all runs
};

class Program {
 public:
  /// Steps for `device`, which must outlive those that run in its queue; without one all are the
  /// host's.
  explicit Program(Device* device = nullptr) : device_(device) {}

  /// A tensor that a step will write.
  TensorId tensor(std::string name, Shape shape);
  /// A row-major tensor in the caller's memory, whose address is given when the program is bound.
  TensorId external(std::string name, Shape shape);
  /// The same elements under another shape with the same batch axis; nothing is copied unless the
  /// tensor exists only in a layout that keeps a pixel's channels together. Asked for again, it is the
  /// same tensor, with the versions that it has by then.
  TensorId reshaped(TensorId id, Shape shape);

  /// Valid as long as the program is.
  const Shape& shape(TensorId id) const { return tensors_[size_t(id)].shape; }
  const std::string& name(TensorId id) const { return tensors_[size_t(id)].name; }
  /// The layout in which the tensor was written first.
  Layout layout(TensorId id) const { return first(id).layout; }
  /// And its number format.
  Format format(TensorId id) const { return first(id).format; }
  /// The same tensor for those who are to find it in this format: itself, or a copy.
  TensorId in_format(TensorId id, Format format);

  /// The buffer that holds this version of the tensor; emits the conversions (a step each) that make
  /// it when there is none yet.
  BufferId read(TensorId id, Version version);
  /// The buffer into which the next step writes the tensor. An existing one, such as external
  /// memory, keeps its layout; where its format or memory is not the version's, the step gets a
  /// copy of it, and a conversion back follows.
  BufferId write(TensorId id, Version version);
  /// Memory for `count` numbers that lives from the step that writes it to the last one that reads it.
  BufferId scratch(int64_t count, Format format = Format::kFloat32, Space space = Space::kHost);
  /// Makes the tensor readable, row-major, after the run.
  BufferId keep(TensorId id);
  /// Makes the program's own what external() made the caller's: memory that lives from the first step
  /// that uses it to the last one.
  void adopt(BufferId id) { buffers_[size_t(id)].external = false; }

  void step(Step step);
  /// Moves the steps of the host that compute only of `constants`, and of what such steps compute, to
  /// the front: they need to run once. Returns how many.
  size_t hoist(const std::vector<BufferId>& constants);
  /// Where the device wants a step to run that is written once for all devices; name and kernel are
  /// set.
  Space space_of(const Step& step) const;
  /// Adds to the description of the kernel of the newest step of that name.
  void remark(const std::string& step, const std::string& text);

  const std::vector<Step>& steps() const { return steps_; }
  /// For passes over the whole program, which may put steps into another order.
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
  /// Drops all but the first version of a tensor and of those that share its buffer: old values.
  void drop_conversions(TensorId id);
  Step conversion(TensorId id, const Stored& from, const Stored& to) const;

  Device* device_;
  std::deque<Tensor>
      tensors_;  // addresses stay valid while it grows: shape() and name() return references
  std::multimap<BufferId, TensorId> views_;  // tensors and their reshaped() by what they share
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
  std::vector<std::pair<TensorId, Stored>>
      returning_;  // written by the next step, wanted elsewhere
};

}  // namespace cafetiere
