// SPDX-License-Identifier: Apache-2.0
// Arguments for functions of the C interface, and the objects that they work on, drawn from bytes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cafetiere/c_api.h"

namespace cafetiere::fuzz {

/// Draws from bytes; zeros behind their end. Sizes that a caller says of its own memory are true, since
/// a lie about them cannot be seen through.
class CallArguments {
 public:
  explicit CallArguments(std::string_view bytes) : left_(bytes) {}
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;
  ~CallArguments();

  bool empty() const { return left_.empty(); }
  uint8_t byte();
  /// A number that means something to some function, or to none.
  int64_t number();
  /// NULL, options or words that some function takes, or any text that creates nothing large and no
  /// file; such are made of what is `given` alone.
  const char* text();
  /// Bytes of the input, or those that an earlier call gave.
  std::string_view bytes();

  /// An object of that kind, or NULL.
  template <class T>
  T* object() {
    const size_t slot = byte() % (kSlots + 1);
    return slot < kSlots ? slots<T>()[slot] : nullptr;
  }
  /// Keeps an object in the place of another, which it gives back.
  template <class T>
  T* keep(T* object) {
    return std::exchange(slots<T>()[byte() % kSlots], object);
  }
  /// Keeps bytes that a call gave and frees them.
  void keep_bytes(void* bytes, uint64_t size);

  /// An argument of type T: an object, a text, a number, or bytes with their size behind them.
  template <class T>
  T draw() {
    if constexpr (std::is_same_v<T, const char*>) {
      return text();
    } else if constexpr (std::is_same_v<T, const void*>) {
      const std::string_view drawn = bytes();
      size_ = drawn.size();
      return drawn.empty() ? nullptr : drawn.data();
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return size_;
    } else if constexpr (std::is_arithmetic_v<T>) {
      return T(number());
    } else {
      return object<std::remove_const_t<std::remove_pointer_t<T>>>();
    }
  }

 private:
  static constexpr size_t kSlots = 2;
  template <class T>
  using Slots = std::array<T*, kSlots>;
  template <class T>
  Slots<T>& slots() {
    return std::get<Slots<T>>(objects_);
  }
  std::string_view take(size_t count);

  std::string_view left_;
  uint64_t size_ = 0;  // of the bytes that were drawn last
  std::tuple<Slots<cft_row_budget>, Slots<cft_rows>, Slots<cft_group>, Slots<cft_trainer>,
             Slots<cft_replica>, Slots<cft_rounds>, Slots<cft_predictor>, Slots<cft_net>,
             Slots<cft_solver>>
      objects_{};
  std::deque<std::string> texts_;  // of this run
  std::vector<std::string> given_;
};

void destroy(cft_row_budget* budget);
void destroy(cft_rows* rows);
void destroy(cft_group* group);
void destroy(cft_trainer* trainer);
void destroy(cft_replica* replica);
void destroy(cft_rounds* rounds);
void destroy(cft_predictor* predictor);
void destroy(cft_net* net);
void destroy(cft_solver* solver);

}  // namespace cafetiere::fuzz
