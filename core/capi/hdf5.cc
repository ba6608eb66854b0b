// SPDX-License-Identifier: Apache-2.0
// Datasets of HDF5 files.
#include "core/model/hdf5.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/capi/boundary.h"

struct cft_hdf5 {
  cafetiere::Hdf5Reader reader;
  mutable std::set<std::string> claimed;  // by name: a dataset is claimed once, however often asked
};

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_hdf5_open(const char* path, cft_hdf5** out) {
  CFT_NOT_NULL(path, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(cafetiere::Hdf5Reader reader, cafetiere::Hdf5Reader::open_file(path));
    *out = new cft_hdf5{std::move(reader), {}};
    return {};
  });
}

int cft_hdf5_shape(const cft_hdf5* hdf5, const char* dataset, char** out) {
  CFT_NOT_NULL(hdf5, dataset, out);
  return capi::guarded([&]() -> Status {
    const bool is_claimed = hdf5->claimed.contains(dataset);
    CFT_ASSIGN(const cafetiere::Shape shape,
               is_claimed ? hdf5->reader.shape(dataset) : hdf5->reader.claim(dataset));
    hdf5->claimed.insert(dataset);
    return capi::give_json(shape.dims(), out);
  });
}

int cft_hdf5_read(const cft_hdf5* hdf5, const char* dataset, uint64_t begin, float* out,
                  uint64_t floats) {
  CFT_NOT_NULL(hdf5, dataset);
  return capi::guarded([&]() -> Status {
    if (floats == 0) return {};
    if (!out) return cafetiere::invalid_argument("out is NULL");
    CFT_ASSIGN(const cafetiere::Shape shape, hdf5->reader.shape(dataset));
    const auto all = uint64_t(shape.count());
    if (begin > all || floats > all - begin) {
      return cafetiere::invalid_argument("the dataset has not so many values");
    }
    return hdf5->reader.read(dataset, size_t(begin), {out, size_t(floats)});
  });
}

void cft_hdf5_close(cft_hdf5* hdf5) { delete hdf5; }
