// SPDX-License-Identifier: Apache-2.0
// The precision of a training: the solver's, or for "auto_float32" the one that the ranks' processors
// suggest when it starts. What was chosen stays, since its bits differ: states keep it.
#include <algorithm>
#include <vector>

#include "core/comm/collectives.h"
#include "core/device/isa.h"
#include "core/machine/amx.h"
#include "core/train/common_precision.h"
#include "core/train/trainer.h"

namespace cafetiere {
namespace {

const char* meaning_of(Precision precision) {
  if (precision == Precision::kBFloat16) return "bfloat16";
  return precision == Precision::kBf16x6 ? "float32, wide products computed as six of bfloat16"
                                         : "float32";
}

bool is_open(const caffe::SolverParameter& p) { return p.precision() == "auto_float32"; }

}  // namespace

/// The precision before other ranks and a state were asked.
Result<Precision> Trainer::first_precision() const {
  CFT_ASSIGN(const Precision precision, precision_of(options_.solver.param.precision()));
  const bool looks = is_open(options_.solver.param) && precision == Precision::kBf16x6;
  if (!looks || look_at_amx(options_.threads).name == "fast") return precision;
  options_.log.info("The tiles of this processor's AMX are slow just now");
  return Precision::kFloat32;
}

/// Plans from now on compute in this precision.
Status Trainer::use_precision(Precision precision) {
  if (options_.device == "ref") {
    device_ = make_ref_device();
    return {};
  }
  precision_ = precision;
  const std::string& name = options_.solver.param.precision();
  if (name != "float32") {
    options_.log.info("Products and activations are {} (precision: {}, instruction set {})",
                      meaning_of(precision), name, instruction_set());
  }
  if (precision == Precision::kBf16x6 && instruction_set() != "amx") {
    options_.log.warning("precision bf16x6 without AMX is slow: its instructions are emulated");
  }
  std::unique_ptr<Device> device = make_cpu_device(precision);
  if (plans_) plans_->use(device.get());
  for (const auto& tester : testers_) tester->use(device.get());
  device_ = std::move(device);
  return plans_ ? plans_->at(0).status() : Status();
}

/// Goes on in the precision of the state's training, if the solver leaves it open.
Status Trainer::resume_precision(const std::string& stored) {
  CFT_ASSIGN(const Precision before, precision_of(stored.empty() ? "float32" : stored));
  if (before == precision_) return {};
  if (is_open(options_.solver.param)) return use_precision(before);
  options_.log.notice("The state is of a training in {}, which goes on in {}",
                      precision_name(before), precision_name(precision_));
  return {};
}

Result<Precision> common_precision(Group* group, Precision mine) {
  if (!group) return mine;
  std::vector<Precision> all(size_t(group->size()));
  CFT_TRY(all_gather(group, std::as_bytes(std::span(&mine, 1)),
                     std::as_writable_bytes(std::span(all))));
  const bool agreed = std::ranges::count(all, mine) == std::ssize(all);
  return agreed ? mine : Precision::kFloat32;
}

/// If the solver leaves it open.
Status Trainer::agree_on_precision(Group* group) {
  if (!is_open(options_.solver.param)) return {};
  CFT_ASSIGN(const Precision common, common_precision(group, precision_));
  return common == precision_ ? Status() : use_precision(common);
}

}  // namespace cafetiere
