// SPDX-License-Identifier: Apache-2.0
// The data layers that are compared with the reference: for each a function that writes files and
// draws a net that reads them.
#pragma once

#include "tests/reference/cases.h"
#include "tests/reference/reference.h"

namespace cafetiere {

/// A net whose data layer is "L".
struct DataNet {
  std::string text;
  int passes = 0;  ///< batches to read, so many that the data begin anew
  caffe::Phase phase = caffe::TEST;
  /// The layer draws at random, each library by its own generator: which rows there are is compared,
  /// not their order. The top "label" has one value a row.
  bool as_sets = false;
  std::vector<float> memory = {}, memory_labels = {};  ///< what MemoryData is given
};

struct DataCase {
  const char* name;
  DataNet (*draw)(Draw&, const TempDir&);
  int draws = 6;
};

std::vector<DataCase> data_cases();

}  // namespace cafetiere
