// SPDX-License-Identifier: Apache-2.0
// Forms: the implementations of an operation on the CPU; the first in the list that accepts is
// used.
#pragma once

#include <string>
#include <type_traits>

#include "core/device/ref/ref_device.h"

namespace cafetiere {

/// An implementation of an operation for tensors of a geometry.
template <class Geometry, class... Operands>
struct Form {
  const char* name;
  /// Why this form does not accept the geometry; empty if it does.
  std::string (*declines)(const Geometry&);
  void (*emit)(Program&, const std::string& step, const Geometry&, Operands...);
};

/// The last form of a list, which accepts everything: calls the reference device.
template <auto kMethod, class Geometry, class... Operands>
void emit_reference(Program& p, const std::string& step, const Geometry& g, Operands... operands) {
  (RefDevice().*kMethod)(p, step, g, operands...);
}
template <auto kMethod, class F>
constexpr F reference_form() {
  return {"reference", [](const auto&) { return std::string(); }, emit_reference<kMethod>};
}

/// Emits the first form that accepts the geometry, trying `bf16` first if that is the format of
/// products; adds the reasons of the forms that declined to the kernel's description.
template <size_t kForms, class Geometry, class... Operands>
void emit_first(Format products, const Form<Geometry, Operands...>& bf16,
                const Form<Geometry, Operands...> (&forms)[kForms], Program& p,
                const std::string& step, const std::type_identity_t<Geometry>& g,
                std::type_identity_t<Operands>... operands) {
  std::string declined;
  const auto emit = [&](const Form<Geometry, Operands...>& form) {
    const std::string reason = form.declines(g);
    if (reason.empty()) {
      form.emit(p, step, g, operands...);
      p.remark(step, declined);
    } else {
      declined += std::string("; not ") + form.name + ": " + reason;
    }
    return reason.empty();
  };
  if (products == Format::kBFloat16 && emit(bf16)) return;
  for (const auto& form : forms) {
    if (emit(form)) return;
  }
}

}  // namespace cafetiere
