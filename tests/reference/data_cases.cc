// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/data_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/data/db.h"
#include "core/data/image.h"
#include "core/data/mean_file.h"
#include "core/model/hdf5.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

std::string bytes(Draw& d, int64_t count) {
  std::string text;
  while (int64_t(text.size()) < count) text.push_back(char(d.integer(0, 255)));
  return text;
}

Image image(Draw& d, int height, int width, int channels) {
  const std::string pixels = bytes(d, int64_t{height} * width * channels);
  return {height, width, channels, {pixels.begin(), pixels.end()}};
}

std::string encoded(Draw& d, const Image& image) {
  return *encode_image(image, d.pick({"png", "jpg"}));
}

/// A mean in one of its forms, or none.
std::string mean(Draw& d, const Shape& image, const TempDir& folder) {
  switch (d.integer(0, 3)) {
    case 0:
      return "";
    case 1:
      return fmt::format("mean_value: {}", d.real(0, 200));
    case 2: {
      std::string values;
      for (int64_t c = 0; c < image[0]; ++c)
        values += fmt::format("mean_value: {} ", d.real(0, 200));
      return values;
    }
    default: {
      const MeanImage pixels{image, d.values("mean", size_t(image.count()), 1)};
      EXPECT_TRUE(write_mean_image(folder.path("mean.binaryproto"), pixels).ok());
      return fmt::format("mean_file: '{}'", folder.path("mean.binaryproto"));
    }
  }
}

/// The fields of a transformation without anything random.
std::string transform(Draw& d, const Shape& image, const TempDir& folder) {
  std::string fields = mean(d, image, folder);
  if (d.coin()) fields += fmt::format(" scale: {}", d.real(0.01, 2));
  if (d.coin()) {
    fields += fmt::format(" crop_size: {}", d.integer(1, int(std::min(image[1], image[2]))));
  }
  return fields;
}

/// A layer "L" of the tops data and label.
std::string data_layer(const std::string& type, const std::string& transform,
                       const std::string& fields) {
  return layer(type, "top: 'data' top: 'label'",
               fmt::format("transform_param {{ {} }} {}", transform, fields));
}

void write_db(DbBackend backend, const std::string& path,
              const std::vector<caffe::Datum>& records) {
  auto writer = create_db(path, backend);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  for (size_t i = 0; i < records.size(); ++i) {
    (*writer)->put(fmt::format("{:08}", i), records[i].SerializeAsString());
  }
  ASSERT_TRUE((*writer)->commit().ok());
}

caffe::Datum datum(Draw& d, const Shape& image, bool floats) {
  caffe::Datum datum;
  datum.set_channels(int(image[0]));
  datum.set_height(int(image[1]));
  datum.set_width(int(image[2]));
  datum.set_label(d.integer(-5, 1000));
  if (floats) {
    for (float v : d.values("x", size_t(image.count()), 1)) datum.add_float_data(v);
  } else {
    datum.set_data(bytes(d, image.count()));
  }
  return datum;
}

Shape image_shape(Draw& d) { return {d.pick({1, 3}), d.integer(3, 9), d.integer(3, 9)}; }

DataNet database(Draw& d, const TempDir& folder, DbBackend backend) {
  const Shape image = image_shape(d);
  const int records = d.integer(2, 7);
  const bool floats = d.coin();
  std::vector<caffe::Datum> written;
  for (int i = 0; i < records; ++i) written.push_back(datum(d, image, floats));
  write_db(backend, folder.path("db"), written);
  const char* name = backend == DbBackend::kLmdb ? "LMDB" : "LEVELDB";
  return {.text = data_layer("Data", transform(d, image, folder),
                             fmt::format("data_param {{ source: '{}' backend: {} batch_size: {} }}",
                                         folder.path("db"), name, d.integer(1, 5))),
          .passes = records + 2};
}

DataNet lmdb(Draw& d, const TempDir& folder) { return database(d, folder, DbBackend::kLmdb); }
DataNet leveldb(Draw& d, const TempDir& folder) { return database(d, folder, DbBackend::kLevelDb); }

/// Images as PNG and JPEG, decoded as stored, in colour or in gray.
DataNet encoded_records(Draw& d, const TempDir& folder) {
  const std::string color = d.pick({"", "force_color: true ", "force_gray: true "});
  const int stored = d.pick({1, 3}), height = d.integer(6, 20), width = d.integer(6, 20);
  std::vector<caffe::Datum> written;
  for (int i = 0; i < 4; ++i) {
    caffe::Datum datum;
    datum.set_encoded(true);
    datum.set_data(encoded(d, image(d, height, width, stored)));
    datum.set_label(i);
    written.push_back(datum);
  }
  write_db(DbBackend::kLmdb, folder.path("db"), written);
  const int channels = color.empty() ? stored : color == "force_gray: true " ? 1 : 3;
  return {
      .text = data_layer("Data", color + transform(d, {channels, height, width}, folder),
                         fmt::format("data_param {{ source: '{}' backend: LMDB batch_size: 3 }}",
                                     folder.path("db"))),
      .passes = 4};
}

/// Crops and mirrors of training: every position, mirrored and not, with the mean at its place.
DataNet augmented(Draw& d, const TempDir& folder) {
  const int side = d.integer(3, 6);
  const Shape image = {d.pick({1, 3}), side + 1, side + 1};
  write_db(DbBackend::kLmdb, folder.path("db"), {datum(d, image, false), datum(d, image, true)});
  return {.text = data_layer(
              "Data", fmt::format("mirror: true crop_size: {} {}", side, mean(d, image, folder)),
              fmt::format("data_param {{ source: '{}' backend: LMDB batch_size: 16 }}",
                          folder.path("db"))),
          .passes = 20,
          .phase = caffe::TRAIN,
          .as_sets = true};
}

/// Image files; to be resized they have sizes of their own.
DataNet image_list(Draw& d, const TempDir& folder, bool resized, bool shuffled) {
  const int count = d.integer(2, 5), height = d.integer(6, 20), width = d.integer(6, 20);
  const bool color = d.coin();
  std::string list, fields;
  for (int i = 0; i < count; ++i) {
    // Also exactly twice the size, which has a way of its own.
    const int h = !resized ? height : i == 0 ? 2 * height : d.integer(3, 50);
    const int w = !resized ? width : i == 0 ? 2 * width : d.integer(3, 50);
    const std::string name = fmt::format("an image {}", i);
    write_text(folder.path(name), encoded(d, image(d, h, w, d.pick({1, 3}))));
    list += fmt::format("{} {}\n", name, d.integer(0, 9));
  }
  write_text(folder.path("list.txt"), list);
  if (resized) fields += fmt::format("new_height: {} new_width: {}", height, width);
  return {.text = data_layer(
              "ImageData", transform(d, {color ? 3 : 1, height, width}, folder),
              fmt::format("image_data_param {{ source: '{}' root_folder: '{}' is_color: {} "
                          "batch_size: {} shuffle: {} {} }}",
                          folder.path("list.txt"), folder.path(""), color,
                          shuffled ? count : d.integer(1, 4), shuffled, fields)),
          .passes = count + 2,
          .as_sets = shuffled};
}

DataNet images(Draw& d, const TempDir& folder) { return image_list(d, folder, false, false); }
DataNet resized_images(Draw& d, const TempDir& folder) {
  return image_list(d, folder, true, false);
}
DataNet shuffled_images(Draw& d, const TempDir& folder) {
  return image_list(d, folder, false, true);
}

/// A window somewhere, perhaps over the border once there is context around it.
std::string window(Draw& d, int label, double overlap, int height, int width) {
  const int x = d.integer(0, width - 2), y = d.integer(0, height - 2);
  return fmt::format("{} {} {} {} {} {}\n", label, overlap, x, y, d.integer(x + 1, width - 1),
                     d.integer(y + 1, height - 1));
}

/// Windows of an object, of background, and one of neither that must not occur. Of colour images: the
/// reference crashes on a list that says 1 channel.
DataNet windows(Draw& d, const TempDir& folder) {
  const int channels = 3, crop = d.integer(5, 16);
  std::string list;
  for (int i = 0; i < 2; ++i) {
    const int height = d.integer(8, 40), width = d.integer(8, 40);
    write_text(folder.path(fmt::format("{}", i)),
               encoded(d, image(d, height, width, d.pick({1, 3}))));
    list += fmt::format("# {}\n{}\n{}\n{}\n{}\n4\n", i, i, channels, height, width);
    list += window(d, 1 + i, 0.75, height, width) + window(d, 3 + i, 0.5, height, width) +
            window(d, 1, 0.4, height, width) + window(d, 0, 0.25, height, width);
  }
  write_text(folder.path("windows.txt"), list);
  const int beside = d.integer(0, 4);  // of the mean's width, whose half lies above the crop, too
  const Shape around = {channels, crop + beside / 2 + d.integer(0, 3), crop + beside};
  return {.text = data_layer(
              "WindowData",
              fmt::format("crop_size: {} mirror: {} {}", crop, d.coin(), mean(d, around, folder)),
              fmt::format("window_data_param {{ source: '{}' root_folder: '{}' "
                          "batch_size: 8 bg_threshold: 0.3 fg_fraction: 0.5 "
                          "scale: {} context_pad: {} crop_mode: '{}' "
                          "cache_images: {} }}",
                          folder.path("windows.txt"), folder.path(""), d.real(0.1, 2),
                          d.integer(0, 2), d.pick({"warp", "square"}), d.coin())),
          .passes = 30,
          .as_sets = true};
}

DataNet memory(Draw& d, const TempDir&) {
  const int batch = d.integer(1, 4), batches = d.integer(1, 3);
  const Shape row = image_shape(d);
  return {.text = layer("MemoryData", "top: 'data' top: 'label'",
                        fmt::format("memory_data_param {{ batch_size: {} channels: {} height: {} "
                                    "width: {} }}",
                                    batch, row[0], row[1], row[2])),
          .passes = batches + 2,
          .memory = d.values("x", size_t(batch * batches * row.count()), 1),
          .memory_labels = d.values("label", size_t(batch * batches), 10)};
}

DataNet dummy(Draw& d, const TempDir&) {
  const std::string shapes = d.coin() ? "shape { dim: 2 dim: 3 } shape { dim: 4 }"
                                      : "num: 2 num: 3 channels: 4 height: 1 height: 2 width: 3";
  return {.text = layer("DummyData", "top: 'data' top: 'label'",
                        fmt::format("dummy_data_param {{ {} {} }}", shapes,
                                    d.pick({"", "data_filler { value: 0.75 }",
                                            "data_filler { value: 2 } data_filler { value: 3 }"}))),
          .passes = 2};
}

/// Files of some rows each; batches reach over their borders.
DataNet hdf5(Draw& d, const TempDir& folder, bool shuffled) {
  const int files = d.integer(1, 3);
  std::vector<int64_t> dims = {0};
  for (int axes = d.integer(0, 4); axes > 0; --axes) dims.push_back(d.integer(1, 4));
  std::string list;
  int rows = 0;
  for (int i = 0; i < files; ++i) {
    dims[0] = d.integer(1, 5);
    const Shape shape(dims), labels = {dims[0]};
    Hdf5Writer writer;
    EXPECT_TRUE(writer.floats("data", shape, d.values("x", size_t(shape.count()), 1)).ok());
    EXPECT_TRUE(writer.floats("label", labels, d.values("label", size_t(dims[0]), 9)).ok());
    const std::string path = folder.path(fmt::format("{}.h5", i));
    write_text(path, *writer.finish());
    list += path + "\n";
    rows += int(dims[0]);
  }
  write_text(folder.path("list.txt"), list);
  return {.text = layer(
              "HDF5Data", "top: 'data' top: 'label'",
              fmt::format("hdf5_data_param {{ source: '{}' batch_size: {} shuffle: {} }}",
                          folder.path("list.txt"), shuffled ? rows : d.integer(1, 7), shuffled)),
          .passes = rows + 1,
          .as_sets = shuffled};
}

DataNet hdf5_in_order(Draw& d, const TempDir& folder) { return hdf5(d, folder, false); }
DataNet hdf5_shuffled(Draw& d, const TempDir& folder) { return hdf5(d, folder, true); }

}  // namespace

std::vector<DataCase> data_cases() {
  return {{"Data_LMDB", lmdb},
          {"Data_LevelDB", leveldb},
          {"Data_encoded", encoded_records, 12},
          {"Data_augmented", augmented},
          {"ImageData", images, 8},
          {"ImageData_resized", resized_images, 12},
          {"ImageData_shuffled", shuffled_images, 4},
          {"WindowData", windows, 16},
          {"MemoryData", memory},
          {"DummyData", dummy},
          {"HDF5Data", hdf5_in_order},
          {"HDF5Data_shuffled", hdf5_shuffled, 4}};
}

}  // namespace cafetiere
