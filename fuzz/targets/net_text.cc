// SPDX-License-Identifier: Apache-2.0
// A net as text, whatever its form: parsed, upgraded, built for both phases, planned and run.
#include "fuzz/small_net.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::net_text(std::string_view bytes) {
  const auto net = parse_net(bytes, "net");
  if (!net.ok()) return;
  for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
    if (const auto graph = build_graph(*net, phase); graph.ok()) try_out(*graph);
  }
}
