// SPDX-License-Identifier: Apache-2.0
// The HDF5 form of a solver state.
#pragma once

#include <memory>

#include "core/model/hdf5.h"
#include "core/model/solver_state.h"

namespace cafetiere {

/// A state read from `file` as needed.
Result<std::unique_ptr<StateSource>> open_hdf5_state(Hdf5Reader file);
Status write_hdf5_state(StateSource& state, Hdf5Writer* file);

}  // namespace cafetiere
