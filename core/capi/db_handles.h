// SPDX-License-Identifier: Apache-2.0
// The handle of a database that is written, of either kind.
#pragma once

#include <memory>

#include "core/data/db.h"

struct cft_lmdb_writer {
  std::unique_ptr<cafetiere::DbWriter> writer;
};
