// SPDX-License-Identifier: Apache-2.0
// The fuzz targets. Each takes bytes that a stranger may hand in at one of the library's doors, and
// must come back, with a value or an error, in bounded time and memory. One file a target, in
// targets/; what each one has learned to tell apart lies in corpus/<target>/.
#pragma once

#include <string_view>

/// All targets, in alphabetical order.
#define CFT_FUZZ_TARGETS(X) \
  X(c_api)                  \
  X(caffemodel)             \
  X(datum)                  \
  X(flags)                  \
  X(handshake)              \
  X(hdf5)                   \
  X(image)                  \
  X(leveldb)                \
  X(lmdb)                   \
  X(net_text)               \
  X(onnx_model)             \
  X(options)                \
  X(row_table)              \
  X(safetensors)            \
  X(solver_state)           \
  X(solver_text)

namespace cafetiere::fuzz {

#define CFT_DECLARE_TARGET(name) void name(std::string_view bytes);
CFT_FUZZ_TARGETS(CFT_DECLARE_TARGET)
#undef CFT_DECLARE_TARGET

}  // namespace cafetiere::fuzz
