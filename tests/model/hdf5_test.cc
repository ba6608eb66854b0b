// SPDX-License-Identifier: Apache-2.0
// Hostile HDF5 files, made with the library itself: what a header promises must not be believed.
#include "core/model/hdf5.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <functional>
#include <string>

#include "core/model/file.h"
#include "core/model/hdf5_handle.h"
#include "core/model/solver_state.h"
#include "core/model/weights.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// The bytes of a file that `fill` writes.
std::string make_file(const std::function<void(hid_t file)>& fill) {
  const std::string path = fmt::format(
      "{}{}.h5", testing::TempDir(), testing::UnitTest::GetInstance()->current_test_info()->name());
  {
    const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          H5Fclose);
    fill(file.get());
  }
  const auto bytes = read_file(path);
  std::remove(path.c_str());
  return bytes.ok() ? *bytes : "";
}

/// Adds the dataset "x" of `count` zeros, which may grow, as `properties` say.
void add_zeros(hid_t file, hsize_t count, hid_t properties, hsize_t limit = H5S_UNLIMITED) {
  const std::vector<float> zeros(count);
  const Hdf5Handle space(H5Screate_simple(1, &count, &limit), H5Sclose);
  const Hdf5Handle dataset(
      H5Dcreate2(file, "x", H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT, properties, H5P_DEFAULT),
      H5Dclose);
  H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
}

Hdf5Handle chunked(hsize_t count) {
  Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(properties.get(), 1, &count);
  return properties;
}

Hdf5Handle add_group(hid_t parent, const char* name) {
  return {H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose};
}

Result<Hdf5Floats> read_x(const std::string& bytes) {
  CFT_ASSIGN(const Hdf5Reader file, Hdf5Reader::open(bytes, "file"));
  return file.floats("x");
}

Status parse(const std::string& bytes) {
  return parse_weights(std::as_bytes(std::span(bytes))).status();
}

/// Else a snapshot's bytes would tell when it was taken, and equal weights would make other files.
TEST(Hdf5, FilesHoldNoTimes) {
  Hdf5Writer writer;
  ASSERT_TRUE(writer.floats("x", {1}, std::vector<float>{1}).ok());
  const std::string path = testing::TempDir() + "FilesHoldNoTimes.h5";
  ASSERT_TRUE(write_file(path, *writer.finish()).ok());
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  H5O_info_t info;
  ASSERT_GE(H5Oget_info_by_name(file.get(), "x", &info, H5P_DEFAULT), 0);
  EXPECT_EQ(info.mtime, 0);
  std::remove(path.c_str());
}

TEST(Hdf5, TextsAreNotCutAtAZeroByte) {
  using std::string_literals::operator""s;
  Hdf5Writer file;
  EXPECT_THAT(file.string("net", "a\0b"s).message(), HasSubstr("no text with a zero byte: a"));
  EXPECT_THAT(file.group("a\0b"s).message(), HasSubstr("zero byte"));
  EXPECT_THAT(file.integer("a\0b"s, 1).message(), HasSubstr("zero byte"));
}

TEST(Hdf5, GzipIsRead) {
  const auto x = read_x(make_file([](hid_t file) {
    const Hdf5Handle packed = chunked(1000);
    H5Pset_shuffle(packed.get());
    H5Pset_deflate(packed.get(), 6);
    H5Pset_fletcher32(packed.get());
    add_zeros(file, 5000, packed.get());
  }));
  ASSERT_TRUE(x.ok()) << x.status().message();
  EXPECT_EQ(x->values, std::vector<float>(5000));
}

TEST(Hdf5, OtherFiltersAreRefused) {
  const auto x = read_x(make_file([](hid_t file) {
    const Hdf5Handle packed = chunked(10);
    H5Pset_scaleoffset(packed.get(), H5Z_SO_FLOAT_DSCALE, 2);
    add_zeros(file, 10, packed.get());
  }));
  EXPECT_THAT(x.status().message(), HasSubstr("compressed by an unsupported filter"));
}

TEST(Hdf5, HugeChunksAreRefused) {
  const auto x = read_x(make_file([](hid_t file) {
    const Hdf5Handle packed = chunked(hsize_t{1} << 29);
    H5Pset_deflate(packed.get(), 1);
    const hsize_t count = 1, limit = H5S_UNLIMITED;
    const Hdf5Handle space(H5Screate_simple(1, &count, &limit), H5Sclose);
    const Hdf5Handle dataset(H5Dcreate2(file, "x", H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT,
                                        packed.get(), H5P_DEFAULT),
                             H5Dclose);
  }));
  EXPECT_THAT(x.status().message(), HasSubstr("chunks that are larger than itself"));
}

TEST(Hdf5, ValuesInOtherFilesAreRefused) {
  const auto x = read_x(make_file([](hid_t file) {
    const Hdf5Handle outside(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_external(outside.get(), "/dev/zero", 0, 4 * sizeof(float));
    add_zeros(file, 4, outside.get(), 4);
  }));
  EXPECT_THAT(x.status().message(), HasSubstr("stores its values in other files"));
}

TEST(Hdf5, LinksIntoOtherFilesAreNotFollowed) {
  const std::string other = testing::TempDir() + "other.h5";
  Hdf5Writer writer;
  ASSERT_TRUE(writer.floats("data/x", {1}, std::vector<float>{1}).ok());
  ASSERT_TRUE(write_file(other, *writer.finish()).ok());
  const std::string bytes = make_file([&](hid_t file) {
    H5Lcreate_external(other.c_str(), "/data/x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(other.c_str(), "/data", file, "data", H5P_DEFAULT, H5P_DEFAULT);
  });
  std::remove(other.c_str());
  const auto file = Hdf5Reader::open(bytes, "file");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file->datasets("/"), IsEmpty());
  EXPECT_THAT(file->datasets("/data"), IsEmpty());
  EXPECT_THAT(file->floats("x").status().message(), HasSubstr("is missing"));
}

TEST(Hdf5, LaddersOfLinksEnd) {
  const std::string bytes = make_file([](hid_t file) {
    Hdf5Handle group = add_group(file, "data");
    for (int depth = 0; depth < 40; ++depth) {
      Hdf5Handle next = add_group(group.get(), "a");
      H5Lcreate_hard(group.get(), "a", group.get(), "b", H5P_DEFAULT, H5P_DEFAULT);
      group = std::move(next);
    }
  });
  EXPECT_THAT(parse(bytes).message(), HasSubstr("has a second name in the file"));
}

/// Adds four MiB of zeros in few bytes, which `group` calls "0", "1" and so on.
void add_zeros_by_many_names(hid_t file, hid_t group) {
  const Hdf5Handle packed = chunked(1 << 20);
  H5Pset_deflate(packed.get(), 9);
  add_zeros(file, 1 << 20, packed.get());
  for (int i = 0; i < 1000; ++i) {
    H5Lcreate_hard(file, "x", group, std::to_string(i).c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }
}

TEST(Hdf5, WeightsUnderManyNamesAreReadOnce) {
  const std::string bytes = make_file([](hid_t file) {
    const Hdf5Handle data = add_group(file, "data"), layer = add_group(data.get(), "ip");
    add_zeros_by_many_names(file, layer.get());
  });
  EXPECT_THAT(parse(bytes).message(), HasSubstr("has a second name in the file"));
}

/// Four GiB otherwise.
TEST(Hdf5, HistoryUnderManyNamesIsNotReadForEach) {
  SolverState state;
  state.iter = 1;
  const auto own = serialize_solver_state(state, ModelFormat::kHdf5);
  ASSERT_TRUE(own.ok());
  const std::string path = testing::TempDir() + "HistoryUnderManyNames.h5";
  ASSERT_TRUE(write_file(path, *own).ok());
  {
    const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const Hdf5Handle history(H5Gopen2(file.get(), "history", H5P_DEFAULT), H5Gclose);
    add_zeros_by_many_names(file.get(), history.get());
  }
  const auto bytes = read_file(path);
  std::remove(path.c_str());
  ASSERT_TRUE(bytes.ok());
  const auto read = parse_solver_state(std::as_bytes(std::span(*bytes)));
  EXPECT_THAT(read.status().message(), HasSubstr("shares its values with another dataset"));
}

}  // namespace
}  // namespace cafetiere
