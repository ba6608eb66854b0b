// SPDX-License-Identifier: Apache-2.0
// UniqueNames: names for nodes, values and layers, none of them given twice.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace cafetiere {

class UniqueNames {
 public:
  /// Names in `taken` are not given.
  explicit UniqueNames(std::set<std::string> taken = {}) : taken_(std::move(taken)) {}

  void take(const std::string& name) { taken_.insert(name); }

  /// `wanted`, or with the first number behind it that makes it new. The last number of
  /// each name is kept: thousands of one name cost no more than as many different ones.
  std::string make(const std::string& wanted) {
    std::string name = wanted;
    for (int64_t* number = nullptr; !taken_.insert(name).second;) {
      if (!number) number = &numbers_[wanted];
      name = wanted + "_" + std::to_string(++*number);
    }
    return name;
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, int64_t> numbers_;
};

}  // namespace cafetiere
