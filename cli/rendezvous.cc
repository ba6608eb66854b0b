// SPDX-License-Identifier: Apache-2.0
#include "cli/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>
#include <utility>

#include "cli/secret.h"

namespace cafetiere {
namespace {

using Json = nlohmann::json;
using Time = std::chrono::steady_clock::time_point;
using std::chrono::steady_clock;

constexpr uint32_t kMaxMessage = 16u << 20;  // addresses of 65536 ranks are shorter
constexpr std::chrono::seconds kHelloTime{5};
constexpr std::chrono::milliseconds kTryAgain{50};

Status await(int fd, short events, Time deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
  pollfd one{fd, events, 0};
  const int ready = poll(&one, 1, int(std::max<int64_t>(left.count(), 0)));
  if (ready > 0 || (ready < 0 && errno == EINTR)) return {};
  return ready < 0 ? io_error(errno_text(errno)) : Status(ErrorCode::kTimeout, "no answer in time");
}

/// Moves all of `bytes` by `call`, which is send() or recv() of a part.
template <class Call>
Status move_all(int fd, short events, std::span<char> bytes, Time deadline, Call call) {
  while (!bytes.empty()) {
    CFT_TRY(await(fd, events, deadline));
    const ssize_t moved = call(bytes);
    if (moved <= 0 && (moved == 0 || !would_block())) return hung_up(moved);
    if (moved > 0) bytes = bytes.subspan(size_t(moved));
  }
  return {};
}

Status send_message(int fd, const Json& message, Time deadline) {
  std::string text = message.dump();
  const auto size = uint32_t(text.size());
  text.insert(0, reinterpret_cast<const char*>(&size), sizeof size);
  return move_all(fd, POLLOUT, text, deadline, [&](std::span<char> rest) {
    return send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
  });
}

Result<Json> receive_message(int fd, Time deadline) {
  const auto receive = [&](std::span<char> rest) { return recv(fd, rest.data(), rest.size(), 0); };
  uint32_t size = 0;
  CFT_TRY(move_all(fd, POLLIN, {reinterpret_cast<char*>(&size), sizeof size}, deadline, receive));
  if (size > kMaxMessage) return io_error("what came is no message of a rank");
  std::string text(size, '\0');
  CFT_TRY(move_all(fd, POLLIN, text, deadline, receive));
  Json message = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) return io_error("what came is no message of a rank");
  return message;
}

std::string text_of(const Json& message, const char* name) {
  const auto field = message.find(name);
  return field != message.end() && field->is_string() ? field->get<std::string>() : "";
}

int number_of(const Json& message, const char* name) {
  const auto field = message.find(name);
  return field != message.end() && field->is_number_integer() ? field->get<int>() : -1;
}

std::string host_of(const SocketAddress& address) {
  std::string text = address.text();
  text.resize(text.rfind(':'));
  return text.front() == '[' ? text.substr(1, text.size() - 2) : text;
}

Result<int> port_of(const std::string& server) {
  const std::string port = server.substr(server.rfind(':') + 1);
  CFT_ASSIGN(const PortRange range, parse_ports(port));
  return range.first;
}

}  // namespace

Result<Rendezvous> Rendezvous::join(const std::string& server, int ranks,
                                    std::chrono::seconds limit) {
  CFT_ASSIGN(const SocketAddress address, parse_address(server));
  CFT_ASSIGN(const int port, port_of(server));
  Rendezvous meeting;
  meeting.ranks_ = ranks;
  meeting.deadline_ = steady_clock::now() + limit;
  const auto listener = listen_on(host_of(address), {port, port});
  if (listener.ok()) {
    meeting.host_ = host_of(address);
    CFT_TRY(meeting.welcome(*listener));
  } else {
    CFT_TRY(meeting.greet(address).with_context("--server " + server));
  }
  return meeting;
}

Status Rendezvous::welcome(const Fd& listener) {
  CFT_ASSIGN(secret_, random_secret());
  while (int(others_.size()) + 1 < ranks_) {
    if (!await(listener.get(), POLLIN, deadline_).ok()) {
      return {ErrorCode::kTimeout,
              fmt::format("{} of {} ranks have come in time: start all with the same --server and "
                          "--ranks",
                          others_.size() + 1, ranks_)};
    }
    Fd one(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!one.valid()) continue;
    // Somebody else who connects keeps the others waiting for a moment, and no more.
    const Time soon = std::min(deadline_, steady_clock::now() + kHelloTime);
    const auto hello = receive_message(one.get(), soon);
    if (!hello.ok()) continue;
    if (number_of(*hello, "ranks") != ranks_) {
      const std::string why = fmt::format("rank 0 was started with --ranks {}", ranks_);
      (void)send_message(one.get(), {{"error", why}}, soon);
      continue;
    }
    const Json welcome{{"rank", others_.size() + 1}, {"secret", secret_}};
    if (send_message(one.get(), welcome, soon).ok()) others_.push_back(std::move(one));
  }
  return {};
}

Status Rendezvous::greet(const SocketAddress& server) {
  Fd fd;
  while (true) {
    CFT_ASSIGN(fd, start_connect(server));
    int error = 0;
    socklen_t size = sizeof error;
    CFT_TRY(await(fd.get(), POLLOUT, deadline_));
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) break;
    if (steady_clock::now() > deadline_) {
      return {ErrorCode::kTimeout,
              fmt::format("no rank 0 listens there ({}), and this machine "
                          "cannot: start one on the machine that has this address",
                          errno_text(error))};
    }
    std::this_thread::sleep_for(kTryAgain);  // rank 0 may be started later
  }
  CFT_TRY(send_message(fd.get(), {{"ranks", ranks_}}, deadline_));
  CFT_ASSIGN(const Json answer, receive_message(fd.get(), deadline_));
  if (const std::string why = text_of(answer, "error"); !why.empty()) return invalid_argument(why);
  rank_ = number_of(answer, "rank");
  secret_ = text_of(answer, "secret");
  if (rank_ < 1 || rank_ >= ranks_) return io_error("what answers there is no rank 0");
  host_ = host_of(local_address(fd.get()));
  others_.push_back(std::move(fd));
  return {};
}

Result<std::vector<std::string>> Rendezvous::exchange(const std::string& address) {
  if (rank_ > 0) {
    CFT_TRY(send_message(others_[0].get(), {{"address", address}}, deadline_));
    CFT_ASSIGN(const Json all, receive_message(others_[0].get(), deadline_));
    std::vector<std::string> addresses;
    const auto list = all.find("addresses");
    if (list == all.end() || !list->is_array()) return io_error("rank 0 has told no addresses");
    for (const Json& one : *list)
      addresses.push_back(one.is_string() ? one.get<std::string>() : "");
    return addresses;
  }
  std::vector<std::string> addresses{address};
  for (size_t i = 0; i < others_.size(); ++i) {
    const auto told = receive_message(others_[i].get(), deadline_);
    if (!told.ok()) return told.status().with_context(fmt::format("rank {}", i + 1));
    addresses.push_back(text_of(*told, "address"));
  }
  for (const Fd& other : others_) {
    CFT_TRY(send_message(other.get(), {{"addresses", addresses}}, deadline_));
  }
  return addresses;
}

}  // namespace cafetiere
