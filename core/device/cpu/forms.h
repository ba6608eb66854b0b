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

/// Emits the first form that accepts the geometry, trying `preferred`, unless null, before the
/// others; adds the reasons of the forms that declined to the kernel's description.
template <size_t kForms, class Geometry, class... Operands>
void emit_first(const Form<Geometry, Operands...>* preferred,
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
  if (preferred && emit(*preferred)) return;
  for (const auto& form : forms) {
    if (emit(form)) return;
  }
}

/// The form of a precision that is tried before those of float32; null: none.
template <class F>
const F* form_of(Precision precision, const F& bf16, const F* bf16x6 = nullptr) {
  if (precision == Precision::kBFloat16) return &bf16;
  return precision == Precision::kBf16x6 ? bf16x6 : nullptr;
}

}  // namespace cafetiere
