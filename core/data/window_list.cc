// SPDX-License-Identifier: Apache-2.0
#include "core/data/window_list.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "core/model/file.h"

namespace cafetiere {
namespace {

/// The words of a text, and the line of the last one. Keeps the first error.
class Words {
 public:
  Words(std::string_view text, const std::string& source) : left_(text), source_(source) {}

  bool done() {
    skip_blanks();
    return left_.empty();
  }
  int line() const { return line_; }
  const Status& status() const { return status_; }

  std::string_view word(std::string_view wanted) {
    if (done()) fail(wanted, "the end of the file");
    const std::string_view word = left_.substr(0, left_.find_first_of(" \t\r\n"));
    left_.remove_prefix(word.size());
    return word;
  }

  template <class T>
  T number(std::string_view wanted) {
    const std::string_view text = word(wanted);
    T value{};
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end) fail(wanted, text);
    return value;
  }

  void fail(std::string_view wanted, std::string_view found) {
    if (!status_.ok()) return;
    status_ = invalid_argument(fmt::format("{}:{}: found \"{}\" instead of {}", source_, line_,
                                           found.substr(0, 100), wanted));
  }

 private:
  void skip_blanks() {
    while (!left_.empty() && std::string_view(" \t\r\n").find(left_[0]) != left_.npos) {
      line_ += left_[0] == '\n';
      left_.remove_prefix(1);
    }
  }

  std::string_view left_;
  const std::string& source_;
  int line_ = 1;
  Status status_;
};

Window read_window(Words& words, int image) {
  Window window;
  window.image = image;
  window.label = words.number<int>("a label");
  window.line = words.line();
  window.overlap = words.number<float>("an overlap");
  window.x1 = words.number<int>("x1");
  window.y1 = words.number<int>("y1");
  window.x2 = words.number<int>("x2");
  window.y2 = words.number<int>("y2");
  return window;
}

}  // namespace

Result<WindowList> read_window_list(const std::string& path) {
  CFT_ASSIGN(const std::string text, read_file(path));
  WindowList list;
  Words words(text, path);
  while (!words.done()) {
    const std::string_view mark = words.word("\"#\"");
    if (mark != "#") words.fail("\"#\", which begins an image", mark);
    words.number<int>("the index of an image");
    WindowImage image;
    image.path = words.word("the path of an image");
    image.channels = words.number<int>("the number of channels");
    words.number<int>("the height");
    words.number<int>("the width");
    const int count = words.number<int>("the number of windows");
    const int index = static_cast<int>(list.images.size());
    list.images.push_back(std::move(image));
    for (int i = 0; i < count && words.status().ok(); ++i) {
      list.windows.push_back(read_window(words, index));
    }
    CFT_TRY(words.status());
  }
  if (list.windows.empty()) return invalid_argument(path + ": it lists no windows");
  return list;
}

}  // namespace cafetiere
