// SPDX-License-Identifier: Apache-2.0
#include "core/sync/modes.h"

#include <algorithm>

#include "core/sync/allreduce.h"
#include "core/sync/auto_mode.h"
#include "core/sync/average.h"
#include "core/sync/compressed.h"
#include "core/sync/downpour.h"
#include "core/sync/easgd.h"
#include "core/sync/hierarchical.h"

namespace cafetiere {
namespace {

using Made = Result<std::unique_ptr<Sync>>;

Exchange exchange_of(const caffe::SyncParameter& sync) {
  const bool brain = sync.wire() == "bfloat16", half = sync.wire() == "float16";
  return {brain  ? Wire::kBfloat16
          : half ? Wire::kFloat16
                 : Wire::kFloat32,
          sync.exchange() == "ring"};
}

Made make_allreduce(const caffe::SyncParameter& sync, const SyncContext& context,
                    const UpdateMaker& update) {
  CFT_ASSIGN(ArenaUpdate rule, update());
  if (sync.compression() != "none") {
    return std::unique_ptr<Sync>(std::make_unique<Compressed>(context, std::move(rule), sync));
  }
  return std::unique_ptr<Sync>(
      std::make_unique<AllReduce>(context, std::move(rule), exchange_of(sync)));
}

Made make_average(const caffe::SyncParameter& sync, const SyncContext& context,
                  const UpdateMaker& update) {
  CFT_ASSIGN(ArenaUpdate rule, update());
  return std::unique_ptr<Sync>(
      std::make_unique<Average>(context, std::move(rule), sync, exchange_of(sync)));
}

template <auto kMake>
Made with_rule(const caffe::SyncParameter& sync, const SyncContext& context,
               const UpdateMaker& update) {
  CFT_ASSIGN(ArenaUpdate rule, update());
  return kMake(sync, context, std::move(rule));
}

Made make_hierarchical(const caffe::SyncParameter& sync, const SyncContext& context,
                       const UpdateMaker& update) {
  CFT_ASSIGN(ArenaUpdate rule, update());
  return Hierarchical::make(context, std::move(rule), sync.period(), sync.group_size());
}

Made make_auto(const caffe::SyncParameter& sync, const SyncContext& context,
               const UpdateMaker& update) {
  auto mode = std::make_unique<AutoMode>(context, sync, update);
  CFT_TRY(mode->start());
  return std::unique_ptr<Sync>(std::move(mode));
}

constexpr SyncMode kModes[] = {
    {.name = "allreduce",
     .text = "every step, the gradients of all shards are added up",
     .promises =
         "the same bits on any number of ranks; with compression, a 16-bit wire or a ring, on "
         "the same number",
     .survivors = false,
     .rounds = false,
     .compression = true,
     .wire = true,
     .outer_step = false,
     .own_history = false,
     .arrays = 1,
     .make = make_allreduce},
    {.name = "average",
     .text = "each shard trains on its own; every `period` iterations the weights are averaged",
     .promises = "the same bits on any number of ranks; with a 16-bit wire or a ring, on the same "
                 "number",
     .survivors = true,
     .rounds = true,
     .compression = false,
     .wire = true,
     .outer_step = false,
     .own_history = true,
     .arrays = 2,
     .make = make_average},
    {.name = "easgd",
     .text = "each rank trains on its own, coupled to a center variable; none waits for another",
     .promises = "none: the bits depend on which rank is faster",
     .survivors = true,
     .rounds = false,
     .compression = false,
     .wire = false,
     .outer_step = false,
     .own_history = false,
     .arrays = 6,
     .rank_shards = "one",
     .make = with_rule<make_easgd>},
    {.name = "downpour",
     .text = "each rank adds its updates to a center variable and takes it; none waits for another",
     .promises = "none: the bits depend on which rank is faster; those of its solver on one rank "
                 "with a period of 1",
     .survivors = true,
     .rounds = false,
     .compression = false,
     .wire = false,
     .outer_step = false,
     .own_history = false,
     .arrays = 9,
     .rank_shards = "one",
     .make = with_rule<make_downpour>},
    {.name = "diloco",
     .text = "as average, with an outer step of Nesterov's momentum on the mean",
     .promises = "the same bits on any number of ranks; with a 16-bit wire or a ring, on the same "
                 "number",
     .survivors = true,
     .rounds = true,
     .compression = false,
     .wire = true,
     .outer_step = true,
     .own_history = true,
     .arrays = 3,
     .make = make_average},
    {.name = "hierarchical",
     .text = "the ranks of a host share every step; every `period` iterations the hosts average",
     .promises = "the same bits for the same teams",
     .survivors = false,
     .rounds = false,
     .compression = false,
     .wire = false,
     .outer_step = false,
     .own_history = false,
     .arrays = 2,
     .rank_shards = "equal",
     .make = make_hierarchical},
    {.name = "auto",
     .text = "measures some steps of allreduce, then keeps it or changes to diloco",
     .promises = "the same bits for the same choice, which a checkpoint keeps",
     .survivors = false,
     .rounds = false,
     .compression = false,
     .wire = true,
     .outer_step = false,
     .own_history = true,
     .arrays = 3,
     .make = make_auto},
};

}  // namespace

std::span<const SyncMode> sync_modes() { return kModes; }

const SyncMode* find_sync_mode(std::string_view name) {
  const auto* found = std::ranges::find(kModes, name, &SyncMode::name);
  return found == std::end(kModes) ? nullptr : found;
}

std::vector<std::string> sync_mode_names(bool SyncMode::*property) {
  std::vector<std::string> names;
  for (const SyncMode& mode : kModes) {
    if (!property || mode.*property) names.emplace_back(mode.name);
  }
  return names;
}

Result<std::unique_ptr<Sync>> make_sync(const caffe::SyncParameter& sync,
                                        const SyncContext& context, const UpdateMaker& update) {
  CFT_TRY(check_sync(sync));
  return find_sync_mode(sync.mode())->make(sync, context, update);
}

}  // namespace cafetiere
