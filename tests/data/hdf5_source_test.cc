// SPDX-License-Identifier: Apache-2.0
#include "core/data/hdf5_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/model/hdf5.h"
#include "tests/data/sources.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Files with datasets "x" (rows of 2 numbers: 10 row, 10 row + 1) and "y" (the row), of 3 and 2 rows.
struct Hdf5Folder {
  TempDir dir;
  Hdf5Folder() {
    write("a.h5", 0, 3);
    write("b.h5", 3, 2);
    dir.write("list.txt", dir.path("a.h5") + "\n" + dir.path("b.h5") + " \n");
  }
  void write(const std::string& name, int first, int rows, int width = 2, int labels = -1) const {
    std::vector<float> x, y;
    for (int i = first; i < first + rows; ++i) {
      for (int k = 0; k < width; ++k) x.push_back(float(10 * i + k));
      y.push_back(float(i));
    }
    y.resize(size_t(labels < 0 ? rows : labels));
    Hdf5Writer writer;
    ASSERT_TRUE(writer.floats("x", {rows, width}, x).ok());
    ASSERT_TRUE(writer.floats("y", {int64_t(y.size())}, y).ok());
    ASSERT_TRUE(writer.integer("flag", 1).ok());
    dir.write(name, *writer.finish());
  }
  std::string layer(const std::string& fields,
                    const std::string& tops = "top: 'x' top: 'y'") const {
    return "type: 'HDF5Data' " + tops + " hdf5_data_param { source: '" + dir.path("list.txt") +
           "' " + fields + " }";
  }
};

TEST(Hdf5Source, ReadsOverFilesAndWraps) {
  const Hdf5Folder folder;
  const auto source = open_layer(folder.layer("batch_size: 4"));
  EXPECT_EQ(source->top_shapes(), (std::vector<Shape>{Shape{4, 2}, Shape{4}}));
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 0, &tops).ok());
  EXPECT_THAT(tops[0], ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
  EXPECT_THAT(tops[1], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(labels(*source, 1), ElementsAre(4, 0, 1, 2));
  EXPECT_THAT(labels(*source, 0), ElementsAre(0, 1, 2, 3));
}

TEST(Hdf5Source, ShufflesFilesAndTheRowsWithin) {
  const Hdf5Folder folder;
  const auto source = open_layer(folder.layer("batch_size: 5 shuffle: true"));
  std::map<std::vector<float>, int> orders;
  bool b_first = false;
  for (int epoch = 0; epoch < 12; ++epoch) {
    const std::vector<float> order = labels(*source, epoch);
    EXPECT_THAT(order, testing::UnorderedElementsAre(0, 1, 2, 3, 4));
    const bool first = order[0] > 2;  // then the rows of b come before those of a
    b_first |= first;
    EXPECT_EQ(order[1] > 2, first);
    ++orders[order];
  }
  EXPECT_TRUE(b_first);
  EXPECT_GT(orders.size(), 5u);
}

TEST(Hdf5Source, Refusals) {
  const Hdf5Folder folder;
  EXPECT_THAT(error_of(folder.layer("batch_size: 2", "top: 'x' top: 'z'")),
              AllOf(HasSubstr("layer \"L\" (HDF5Data)"), HasSubstr("a.h5"), HasSubstr("z"),
                    HasSubstr("missing")));
  EXPECT_THAT(error_of(folder.layer("batch_size: 2", "top: 'flag' top: 'x'")),
              HasSubstr("but flag has 1"));
  EXPECT_THAT(error_of(folder.layer("")), HasSubstr("batch_size"));
  EXPECT_THAT(error_of(folder.layer("batch_size: 1", "top: 'x' transform_param { scale: 2 }")),
              HasSubstr("does not transform"));
  const auto with = [&](const std::string& name) {
    folder.dir.write("list.txt", folder.dir.path("a.h5") + " " + folder.dir.path(name));
    return error_of(folder.layer("batch_size: 4"));
  };
  EXPECT_THAT(with("none.h5"), AllOf(HasSubstr("list.txt"), HasSubstr("File not found")));
  folder.dir.write("text.h5", "hello");
  EXPECT_THAT(with("text.h5"), HasSubstr("not an HDF5 file"));
  folder.write("wide.h5", 0, 2, 3);
  EXPECT_THAT(with("wide.h5"), AllOf(HasSubstr("wide.h5"), HasSubstr("3 (3)"), HasSubstr("a.h5")));
  folder.write("odd.h5", 0, 2, 2, 1);
  EXPECT_THAT(with("odd.h5"), AllOf(HasSubstr("y has 1 rows"), HasSubstr("x has 2")));
  folder.dir.write("list.txt", " \n");
  EXPECT_THAT(error_of(folder.layer("batch_size: 4")), HasSubstr("no files"));
}

}  // namespace
}  // namespace cafetiere
