// SPDX-License-Identifier: Apache-2.0
// test: the mean outputs of a net with trained weights over some batches.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/glog.h"
#include "cli/loaded_net.h"
#include "core/train/tester.h"

namespace cafetiere {
namespace {

struct TestFlags {
  std::string model, weights;
  int iterations = 50;
  StateFlags state;
  DeviceFlags device;
};

/// Runs the batches, prints each one's outputs and adds up the loss and every output element.
Status run_batches(const LoadedNet& net, Plan& plan, const TestFlags& flags, const Logger& log,
                   double* loss, std::vector<double>* sums) {
  ThreadPool pool(flags.device.thread_count());
  for (int batch = 0; batch < flags.iterations; ++batch) {
    for (const Feed& feed : net.feeds.feeds) CFT_TRY(net.fill(feed, batch, plan));
    CFT_TRY(plan.run_forward(pool, {.seed = 1, .sub_step = batch}));
    *loss += double(plan.loss());
    size_t at = 0;
    for (const Plan::Blob& output : plan.outputs()) {
      for (int64_t i = 0; i < output.shape.count(); ++i, ++at) {
        if (at == sums->size()) sums->push_back(0);
        (*sums)[at] += double(output.data[i]);
        log.info("Batch {}, {} = {:g}", batch, output.name, output.data[i]);
      }
    }
  }
  return {};
}

Status test(const TestFlags& flags) {
  Glog glog(stderr);
  const Logger log = glog.logger();
  flags.device.report(log);
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  flags.state.apply(&state);
  CFT_ASSIGN(const std::unique_ptr<LoadedNet> net, LoadedNet::load(flags.model, state, log));
  CFT_TRY(refuse_unfed(net->feeds, flags.model));
  CFT_TRY(net->load_weights(flags.weights, net->graph.outputs(), log));
  CFT_ASSIGN(const std::unique_ptr<Plan> plan, net->compile({.outputs = {}}));

  log.info("Running for {} iterations.", flags.iterations);
  double loss = 0;
  std::vector<double> sums;
  CFT_TRY(run_batches(*net, *plan, flags, log, &loss, &sums));
  log.info("Loss: {:g}", loss / flags.iterations);
  size_t at = 0;
  for (const Plan::Blob& output : plan->outputs()) {
    for (int64_t i = 0; i < output.shape.count(); ++i, ++at) {
      const double mean = sums[at] / flags.iterations;
      log.info("{} = {:g}{}", output.name, mean, loss_note(output.loss_weight, mean));
    }
  }
  return {};
}

}  // namespace

Action add_test(CLI::App& app) {
  const auto flags = std::make_shared<TestFlags>();
  app.add_option("--model", flags->model, "the net's prototxt")->required();
  app.add_option("--weights", flags->weights, "the .caffemodel file")->required();
  app.add_option("--iterations", flags->iterations, "batches to run (default: 50)")
      ->check(CLI::Range(1, 1 << 30));
  flags->state.add(app);
  flags->device.add(app);
  return [flags] { return test(*flags); };
}

}  // namespace cafetiere
