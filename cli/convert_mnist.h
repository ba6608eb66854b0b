// SPDX-License-Identifier: Apache-2.0
// convert_mnist: the digits' IDX files as a database for Caffe's Data layer.
#pragma once

#include <string>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/data/db.h"

namespace cafetiere {

/// Reads an IDX file of images and one of labels, as they are or gzipped, and writes the new
/// database `db`: one Datum a digit, keys "00000000", "00000001", ..., committed every 1,000.
Status convert_mnist(const std::string& images, const std::string& labels, const std::string& db,
                     DbBackend backend, const Logger& log = {});

/// The same files as a database for a siamese net: as many pairs as there are digits, each of two
/// that are drawn at random, one a channel; label 1 where both show the same digit.
Status convert_mnist_pairs(const std::string& images, const std::string& labels,
                           const std::string& db, DbBackend backend, const Logger& log = {});

}  // namespace cafetiere
