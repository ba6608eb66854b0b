// SPDX-License-Identifier: Apache-2.0
// The deploy form of a net: what is left to score rows with, of a net that was written to train.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/prototxt.h"

namespace cafetiere {

/// The layers that `net` has in `state`.
Result<NetText> in_state(const NetText& net, const caffe::NetState& state);

/// Puts Input layers in the place of data layers (and gives Input layers other shapes) by what their
/// tops are called. A top beside one in `shapes` keeps the shape that an Input layer says, or gets
/// (batch), as labels have. A name that no such layer gives is an error.
Status set_input_shapes(const std::map<std::string, Shape>& shapes, NetText* net);

/// A net made from another, and what was changed, for the log.
struct DeployForm {
  NetText net;
  std::vector<std::string> notes;
  std::vector<std::string> classes;  ///< of the label of a TableData that was left out
};

/// `net`, in its state and built as `graph`, without what only training and testing need. Data layers
/// become Input layers of their shapes, but for TableData, which has an ONNX form; SoftmaxWithLoss and InfogainLoss become Softmax,
/// SigmoidCrossEntropyLoss becomes Sigmoid, with the top that such a loss calls its probabilities, else
/// "prob". Other losses, Accuracy and HDF5Output go, and whatever only they used: labels. A net in its
/// deploy form stays as it is.
DeployForm deploy_form(const NetText& net, const Graph& graph);

/// The same of a net as it was written: what it has in `state`, with `shapes` set, an error of which
/// begins with "shape". `build` makes the graph, for which it may look into what data layers name.
Result<DeployForm> deploy_form(const NetText& all, const caffe::NetState& state,
                               const std::map<std::string, Shape>& shapes,
                               const std::function<Result<Graph>(const NetText&)>& build);

}  // namespace cafetiere
