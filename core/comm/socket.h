// SPDX-License-Identifier: Apache-2.0
// Sockets: ownership, addresses and the options of all connections of a group.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <string>
#include <utility>

#include "core/base/status.h"

namespace cafetiere {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// An IP address with a port.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  std::string text() const;  ///< "10.0.0.7:41000" or "[fd00::7]:41000"
  bool is_private() const;   ///< loopback, or a private network
  bool is_wildcard() const;  ///< 0.0.0.0 or ::
};

/// Parses "host:port" or "[ipv6]:port".
Result<SocketAddress> parse_address(const std::string& text);

/// Ports to listen on, for machines behind a firewall; default: any free port.
struct PortRange {
  int first = 0, last = 0;
};

/// Parses "40000" or "40000-40100"; "" for any port.
Result<PortRange> parse_ports(const std::string& text);

/// Listens, non-blocking, on the first free port of `ports` at this address only.
Result<Fd> listen_on(const std::string& host, PortRange ports = {});

SocketAddress local_address(int fd);
SocketAddress remote_address(int fd);

/// Starts a non-blocking connection; it is open when the socket becomes writable.
Result<Fd> start_connect(const SocketAddress& to);

/// For data: no delay, large buffers, and cubic on links to near hosts, where a paced congestion
/// control would slow the sender. Keepalive ends an idle connection, but not before `timeout_ms`:
/// a shorter outage must not. No TCP_USER_TIMEOUT: it would also end a connection whose
/// receiver merely computes for longer than that before it reads again.
void tune_data(int fd, int timeout_ms);

/// For heartbeats: no delay, and a dead link is noticed within `timeout_ms`.
void tune_control(int fd, int timeout_ms);

/// Whether errno says that a non-blocking call would block.
bool would_block();

/// The error of a handshake ended by a send() or recv() that returned 0 or less.
Status hung_up(ssize_t result);

/// The system's text for an errno value.
std::string errno_text(int error);

}  // namespace cafetiere
