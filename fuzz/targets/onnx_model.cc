// SPDX-License-Identifier: Apache-2.0
// An ONNX model: imported as a net, which is built with its weights and run.
#include "core/graph/arena.h"
#include "core/onnx/import.h"
#include "fuzz/small_net.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::onnx_model(std::string_view bytes) {
  const auto imported = import_onnx(bytes);
  if (!imported.ok()) return;
  NetText net;
  net.param = structure_of(*imported);
  net.source = "model";
  const auto graph = build_graph(net, caffe::TEST);
  if (!graph.ok()) return;
  std::vector<float> arena(size_t(graph->arena_size()));
  (void)load_weights(*graph, *imported, arena, nullptr);
  try_out(*graph);
}
