// SPDX-License-Identifier: Apache-2.0
// A binary caffemodel: upgraded, loaded into a net that has layers of the usual names, written anew
// in both forms.
#include "core/graph/arena.h"
#include "core/model/weights.h"
#include "fuzz/small_net.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::caffemodel(std::string_view bytes) {
  const auto weights = parse_weights(std::as_bytes(std::span(bytes)));
  if (!weights.ok()) return;
  const auto graph = small_lenet();
  std::vector<float> arena(size_t(graph->arena_size()));
  std::vector<std::string> ignored;
  const Status loaded = load_weights(*graph, *weights, arena, &ignored);
  (void)loaded;
  for (const ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    (void)serialize_weights(*weights, format);
  }
}
