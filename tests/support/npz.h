// SPDX-License-Identifier: Apache-2.0
// Reads NumPy's .npz files (zip archives of .npy arrays) as floats, for figures to compare with.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cafetiere {

/// One array: its shape and its values, row-major, as floats.
struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

namespace npz {

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value;
  if (at + sizeof(T) > bytes.size()) throw std::runtime_error("npz: the file is cut off");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

inline std::string inflate_raw(std::string_view packed, size_t size) {
  std::string out(size, '\0');
  z_stream stream{};
  inflateInit2(&stream, -MAX_WBITS);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(size);
  const int result = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("npz: a member cannot be inflated");
  return out;
}

template <class T>
std::vector<float> as_floats(std::string_view data) {
  std::vector<float> values(data.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(number_at<T>(data, i * sizeof(T)));
  }
  return values;
}

/// The text after `key` in a .npy header, a Python dictionary of a fixed form.
inline std::string_view after(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) throw std::runtime_error("npz: not a .npy header");
  return header.substr(at + key.size());
}

inline NpyArray parse_npy(std::string_view bytes) {
  const bool first_version = number_at<uint8_t>(bytes, 6) == 1;
  const size_t start = first_version ? 10 : 12;
  const size_t length =
      first_version ? number_at<uint16_t>(bytes, 8) : number_at<uint32_t>(bytes, 8);
  const std::string_view header = bytes.substr(start, length);
  const std::string_view data = bytes.substr(start + length);
  if (after(header, "'fortran_order': ").starts_with("True")) {
    throw std::runtime_error("npz: Fortran order is not supported");
  }
  NpyArray array;
  std::string_view dims = after(header, "'shape': (");
  dims = dims.substr(0, dims.find(')'));
  for (size_t at = dims.find_first_of("0123456789"); at != std::string_view::npos;) {
    array.shape.push_back(std::stoll(std::string(dims.substr(at))));
    at = dims.find(',', at);
    if (at != std::string_view::npos) at = dims.find_first_of("0123456789", at);
  }
  const std::string_view type = after(header, "'descr': '").substr(0, 3);
  if (type == "<f4") array.values = as_floats<float>(data);
  if (type == "<f8") array.values = as_floats<double>(data);
  if (type == "<i4") array.values = as_floats<int32_t>(data);
  if (type == "<i8") array.values = as_floats<int64_t>(data);
  if (type == "|u1") array.values = as_floats<uint8_t>(data);
  return array;
}

}  // namespace npz

/// All arrays of a .npz file by name (without ".npy"). Throws when the file cannot be read.
inline std::map<std::string, NpyArray> read_npz(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("npz: cannot open " + path);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string::npos) throw std::runtime_error("npz: not a zip archive: " + path);

  std::map<std::string, NpyArray> arrays;
  const std::string_view all(bytes);
  size_t entry = npz::number_at<uint32_t>(all, end + 16);
  for (int left = npz::number_at<uint16_t>(all, end + 10); left > 0; --left) {
    const auto method = npz::number_at<uint16_t>(all, entry + 10);
    const size_t packed = npz::number_at<uint32_t>(all, entry + 20);
    const size_t size = npz::number_at<uint32_t>(all, entry + 24);
    const size_t name_length = npz::number_at<uint16_t>(all, entry + 28);
    const size_t local = npz::number_at<uint32_t>(all, entry + 42);
    std::string name(all.substr(entry + 46, name_length));
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    const size_t data = local + 30 + npz::number_at<uint16_t>(all, local + 26) +
                        npz::number_at<uint16_t>(all, local + 28);
    const std::string_view member = all.substr(data, packed);
    arrays[name] =
        npz::parse_npy(method == 0 ? std::string(member) : npz::inflate_raw(member, size));
    entry += 46 + name_length + npz::number_at<uint16_t>(all, entry + 30) +
             npz::number_at<uint16_t>(all, entry + 32);
  }
  return arrays;
}

}  // namespace cafetiere
