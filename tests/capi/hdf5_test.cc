// SPDX-License-Identifier: Apache-2.0
// HDF5 files through the C interface.
#include "core/model/hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cafetiere/c_api.h"
#include "tests/capi/handed.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

TEST(Hdf5File, ADatasetsShapeIsToldAsOftenAsItIsAskedFor) {
  const TempDir folder;
  const std::string path = folder.path("one.h5");
  const std::vector<float> values(30000, 2.f);  // more than half of the file
  ASSERT_TRUE(replace_hdf5(path, [&](Hdf5Writer* file) {
                return file->floats("data", {100, 300}, values);
              }).ok());
  cft_hdf5* file = nullptr;
  ASSERT_EQ(cft_hdf5_open(path.c_str(), &file), 0) << cft_last_error();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(handed_text(cft_hdf5_shape, file, "data"), "[100,300]");
  }
  cft_hdf5_close(file);
}

}  // namespace
}  // namespace cafetiere
