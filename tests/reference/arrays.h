// SPDX-License-Identifier: Apache-2.0
// Named arrays of floats in a file: what the tests and the reference's process tell each other. Both
// sides compile this header, the reference's as C++11 with the old ABI of the standard library.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace parity {

using Arrays = std::map<std::string, std::vector<float>>;

/// Writes (length, name, count, values) for each array, in the machine's own byte order.
inline void write_arrays(const std::string& path, const Arrays& arrays) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& entry : arrays) {
    const uint64_t length = entry.first.size(), count = entry.second.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file.write(entry.first.data(), std::streamsize(length));
    file.write(reinterpret_cast<const char*>(&count), sizeof count);
    file.write(reinterpret_cast<const char*>(entry.second.data()),
               std::streamsize(count * sizeof(float)));
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

/// The reverse of write_arrays; throws when the file is not there or cut off.
inline Arrays read_arrays(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  Arrays arrays;
  uint64_t length = 0, count = 0;
  while (file.read(reinterpret_cast<char*>(&length), sizeof length)) {
    std::string name(length, '\0');
    file.read(&name[0], std::streamsize(length));
    file.read(reinterpret_cast<char*>(&count), sizeof count);
    std::vector<float>& values = arrays[name];
    values.resize(count);
    file.read(reinterpret_cast<char*>(values.data()), std::streamsize(count * sizeof(float)));
    if (!file) throw std::runtime_error(path + " is cut off");
  }
  return arrays;
}

}  // namespace parity
