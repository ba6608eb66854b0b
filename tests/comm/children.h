// SPDX-License-Identifier: Apache-2.0
// Ranks as child processes, to be killed and stopped.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "ranks.h"

namespace cafetiere::test {

/// A group whose rank 0 is the test and whose other ranks are forked processes. Make it while the
/// test has no other threads.
class Children {
 public:
  /// Each child connects, runs `body` and reports the status that it returns.
  Children(int size, int timeout_ms, const std::function<Status(Group&)>& body,
           Transport transport = Transport::kTcp)
      : size_(size), timeout_ms_(timeout_ms), transport_(transport) {
    for (int rank = 1; rank < size; ++rank) fork_child(rank, body);
    auto group = TcpGroup::listen(options(0));
    std::string addresses = (*group)->address();
    for (Child& child : children_) addresses.append("\n").append(read_line(child.from));
    for (Child& child : children_) write_line(child.to, addresses);
    const Status status = (*group)->connect(split(addresses));
    EXPECT_TRUE(status.ok()) << status.message();
    group_ = std::move(*group);
  }

  ~Children() {
    group_.reset();
    for (Child& child : children_) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
      close(child.from);
      close(child.to);
    }
  }

  Group& group() { return *group_; }
  void signal(int rank, int number) { kill(children_[rank - 1].pid, number); }
  /// "code message", as the child's body returned it; empty when it died before.
  std::string report(int rank) { return read_line(children_[rank - 1].from); }

 private:
  struct Child {
    pid_t pid;
    int from, to;
  };

  GroupOptions options(int rank) const {
    GroupOptions o = options_of(transport_, rank, size_);
    o.timeout_ms = timeout_ms_;
    return o;
  }

  void fork_child(int rank, const std::function<Status(Group&)>& body) {
    int up[2], down[2];
    ASSERT_EQ(pipe(up), 0);
    ASSERT_EQ(pipe(down), 0);
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      close(up[0]);
      close(down[1]);
      for (Child& other : children_) {
        close(other.from);
        close(other.to);
      }
      _exit(run_child(rank, down[0], up[1], body));
    }
    close(up[1]);
    close(down[0]);
    children_.push_back({pid, up[0], down[1]});
  }

  int run_child(int rank, int in, int out, const std::function<Status(Group&)>& body) {
    auto group = TcpGroup::listen(options(rank));
    if (!group.ok()) return 1;
    write_line(out, (*group)->address());
    std::vector<std::string> addresses;
    for (int r = 0; r < size_; ++r) addresses.push_back(read_line(in));
    Status status = (*group)->connect(addresses);
    if (status.ok()) status = body(**group);
    write_line(out, fmt::format("{} {}", static_cast<int>(status.code()), status.message()));
    return 0;
  }

  static std::string read_line(int fd) {
    std::string line;
    for (char c; read(fd, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  static void write_line(int fd, std::string text) {
    text += '\n';
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> lines(1);
    for (char c : text) {
      if (c == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += c;
      }
    }
    return lines;
  }

  const int size_;
  const int timeout_ms_;
  const Transport transport_;
  std::vector<Child> children_;
  std::unique_ptr<TcpGroup> group_;
};

}  // namespace cafetiere::test
