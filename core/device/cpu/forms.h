// SPDX-License-Identifier: Apache-2.0
// Forms: the ways in which the CPU does one operation; the first in the list to accept is taken.
#pragma once

#include <string>
#include <type_traits>

#include "core/device/ref/ref_device.h"

namespace cafetiere {

/// One way to do an operation on tensors of a geometry.
template <class Geometry, class... Operands>
struct Form {
  const char* name;
  /// Why this form is not for the geometry; empty if it is.
  std::string (*declines)(const Geometry&);
  void (*emit)(Program&, const std::string& step, const Geometry&, Operands...);
};

/// The last of a list, which accepts everything: what the reference device does.
template <auto kMethod, class Geometry, class... Operands>
void emit_reference(Program& p, const std::string& step, const Geometry& g, Operands... operands) {
  (RefDevice().*kMethod)(p, step, g, operands...);
}
template <auto kMethod, class F>
constexpr F reference_form() {
  return {"reference", [](const auto&) { return std::string(); }, emit_reference<kMethod>};
}

/// Emits the first form that accepts the geometry, `bf16` before the others where that is the format of
/// products; its kernel also says why those before declined.
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
