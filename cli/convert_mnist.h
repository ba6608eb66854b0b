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

}  // namespace cafetiere
