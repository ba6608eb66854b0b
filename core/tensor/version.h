// SPDX-License-Identifier: Apache-2.0
// Version: the order, number format and memory in which a tensor's elements are stored.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/layout.h"

namespace cafetiere {

/// The number format of stored elements. Kernels compute in float32 whatever they load and store.
enum class Format { kFloat32, kBFloat16 };

/// Bytes of an element.
inline int64_t format_size(Format format) { return format == Format::kFloat32 ? 4 : 2; }

inline const char* format_name(Format format) {
  return format == Format::kFloat32 ? "float32" : "bfloat16";
}

/// Whose memory: the host's, or that of the device that a program is made for.
enum class Space { kHost, kDevice };

/// A tensor may exist in several versions at a time, all of the same values but for rounding.
struct Version {
  Layout layout;
  Format format = Format::kFloat32;
  Space space = Space::kHost;

  // Implicit: most kernels need the layout alone.
  Version(Layout layout, Format format = Format::kFloat32, Space space = Space::kHost)
      : layout(layout), format(format), space(space) {}

  /// Layout and format; float32 is left out.
  std::string name() const {
    std::string text = layout_name(layout);
    if (format != Format::kFloat32) text += std::string(" ") + format_name(format);
    return text;
  }
};

}  // namespace cafetiere
