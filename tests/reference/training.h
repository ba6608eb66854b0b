// SPDX-License-Identifier: Apache-2.0
// One training, described once and run by either library.
#pragma once

#include <string>
#include <vector>

#include "tests/reference/reference.h"

namespace cafetiere {

/// A net of nets/*.prototxt and the images that it takes.
struct TrainedNet {
  const char* name;
  int channels, side;
};

/// The losses of the iterations that were run, and the parameters after them, in net order.
struct TrainingOutcome {
  std::vector<float> losses;
  std::vector<std::vector<float>> weights;
};

/// A folder with images, initial weights, and whatever trainings leave there.
class TrainingBench {
 public:
  /// `rule` names one of solvers/*.prototxt; `hdf5` is the format of snapshots.
  TrainingBench(const TrainedNet& net, const std::string& rule, bool hdf5 = false,
                int images = 400);

  /// Trains to `steps`, from the initial weights or from the state `from`. Snapshots are named
  /// `name`. `device` as TrainerOptions has it.
  TrainingOutcome here(const std::string& name, int steps, const std::string& from = "",
                       const std::string& device = "cpu");
  TrainingOutcome in_reference(const std::string& name, int steps, const std::string& from = "",
                               const ReferenceKernels& kernels = {});

  /// The state that `name` left after `steps`.
  std::string state_path(const std::string& name, int steps) const;

 private:
  void write_images(const TrainedNet& net, int count);
  std::string solver_text(const std::string& name, int steps) const;

  std::string rule_;  ///< the text of one of solvers/*.prototxt
  bool hdf5_;
  TempDir folder_;
};

}  // namespace cafetiere
