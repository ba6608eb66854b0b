// SPDX-License-Identifier: Apache-2.0
#include "core/comm/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

namespace cafetiere {
namespace {

constexpr int kBacklog = 256;
constexpr int kSocketBuffer = 4 << 20;
constexpr int kKeepaliveProbes = 3;
constexpr int kMaxKeepaliveInterval = 32767;  // seconds; Linux takes no longer one

Result<SocketAddress> resolve(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return invalid_argument(
        fmt::format("cannot resolve '{}' port '{}': {}; use an IP address, or a host name that "
                    "this machine can resolve",
                    host, port, gai_strerror(error)));
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, freeaddrinfo);
  SocketAddress e;
  std::memcpy(&e.storage, found->ai_addr, found->ai_addrlen);
  e.length = found->ai_addrlen;
  return e;
}

bool is_private_v4(uint32_t a) {
  return (a >> 24) == 127 || (a >> 24) == 10 || (a >> 20) == 0xac1 || (a >> 16) == 0xc0a8 ||
         (a >> 16) == 0xa9fe;
}

const in6_addr& v6_address(const SocketAddress& e) {
  return reinterpret_cast<const sockaddr_in6&>(e.storage).sin6_addr;
}

uint32_t v4_address(const SocketAddress& e) {
  return ntohl(reinterpret_cast<const sockaddr_in&>(e.storage).sin_addr.s_addr);
}

void set_option(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);  // best effort: affects only speed
}

/// No delay; and after 1 s of silence the kernel probes the peer every `interval_s`, and gives up
/// when no probe has been answered.
void tune_common(int fd, int interval_s) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

std::string SocketAddress::text() const {
  char host[INET6_ADDRSTRLEN] = "?";
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
    return fmt::format("[{}]:{}", host, ntohs(v6.sin6_port));
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
  inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
  return fmt::format("{}:{}", host, ntohs(v4.sin_port));
}

bool SocketAddress::is_private() const {
  if (storage.ss_family == AF_INET) return is_private_v4(v4_address(*this));
  const in6_addr& a = v6_address(*this);
  return IN6_IS_ADDR_LOOPBACK(&a) || IN6_IS_ADDR_LINKLOCAL(&a) || (a.s6_addr[0] & 0xfe) == 0xfc;
}

bool SocketAddress::is_wildcard() const {
  if (storage.ss_family == AF_INET) return v4_address(*this) == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&v6_address(*this));
}

Result<SocketAddress> parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty()) {
    return invalid_argument(fmt::format("'{}' is not an address: expected host:port", text));
  }
  return resolve(host, text.substr(colon + 1));
}

Result<PortRange> parse_ports(const std::string& text) {
  constexpr int kLastPort = 65535;
  if (text.empty()) return PortRange();
  const auto parse = [](std::string_view digits) {
    int port = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), port);
    return error == std::errc() && end == digits.end() ? port : 0;
  };
  const size_t dash = text.find('-');
  PortRange ports{parse(std::string_view(text).substr(0, dash)), 0};
  ports.last =
      dash == std::string::npos ? ports.first : parse(std::string_view(text).substr(dash + 1));
  if (ports.first < 1 || ports.last < ports.first || ports.last > kLastPort) {
    return invalid_argument(
        fmt::format("ports are '{}': use a port or a range, such as 40000-40100", text));
  }
  return ports;
}

Result<Fd> listen_on(const std::string& host, PortRange ports) {
  for (int port = ports.first; port <= ports.last; ++port) {
    CFT_ASSIGN(const SocketAddress at, resolve(host, std::to_string(port)));
    if (at.is_wildcard()) {
      return invalid_argument(
          fmt::format("cannot listen on '{}': it means every interface; use the one address that "
                      "the other ranks connect to",
                      host));
    }
    Fd fd(socket(at.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    // Connections of an earlier group may still hold a configured port.
    if (fd.valid() && port != 0) set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (fd.valid() && bind(fd.get(), at.get(), at.length) == 0 && listen(fd.get(), kBacklog) == 0) {
      return fd;
    }
    if (port == 0 || errno != EADDRINUSE) {
      return io_error(fmt::format("cannot listen on '{}': {}; is it an address of this machine?",
                                  at.text(), errno_text(errno)));
    }
  }
  return io_error(fmt::format(
      "no port of {}-{} is free at '{}': use a wider range; each rank of a machine needs one",
      ports.first, ports.last, host));
}

SocketAddress local_address(int fd) {
  SocketAddress e;
  e.length = sizeof e.storage;
  getsockname(fd, e.get(), &e.length);
  return e;
}

SocketAddress remote_address(int fd) {
  SocketAddress e;
  e.length = sizeof e.storage;
  getpeername(fd, e.get(), &e.length);
  return e;
}

Result<Fd> start_connect(const SocketAddress& to) {
  Fd fd(socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return io_error("cannot make a socket: " + errno_text(errno));
  if (connect(fd.get(), to.get(), to.length) != 0 && errno != EINPROGRESS) {
    return unavailable(fmt::format("cannot connect to {}: {}", to.text(), errno_text(errno)));
  }
  return fd;
}

void tune_data(int fd, int timeout_ms) {
  const int interval = timeout_ms / (kKeepaliveProbes * 1000) + 1;
  tune_common(fd, std::min(interval, kMaxKeepaliveInterval));
  // The plain options are capped at the system's limit and disable the kernel's buffer tuning,
  // which then works better: so force the sizes, or leave them alone.
  set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, kSocketBuffer);
  set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, kSocketBuffer);
  if (remote_address(fd).is_private()) {
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
  }
}

void tune_control(int fd, int timeout_ms) {
  tune_common(fd, 1);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout_ms);
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

Status hung_up(ssize_t result) {
  return unavailable("closed the connection during the handshake: " +
                     (result < 0 ? errno_text(errno) : std::string("end of stream")));
}

std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace cafetiere
