// SPDX-License-Identifier: Apache-2.0
// delay ONE_WAY_MS MBIT NAMESPACE=ADDRESS...: a switch in user space for links with a long way.
//
// Each namespace gets a TUN device "eth0", which the caller gives its ADDRESS; a packet leaves at the
// sender's rate and arrives ONE_WAY_MS later. For kernels without netem. Prints "ready" once the
// devices are there; they vanish with this process.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <queue>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr size_t kOffloads = 10;                  // struct virtio_net_hdr before each packet
constexpr size_t kLargest = 66'000;               // a packet before segmentation, with its headers
constexpr int kTurn = 32;                         // packets taken from one sender at a time
constexpr std::chrono::milliseconds kQueue{200};  // of a sender; what comes beyond it is dropped
constexpr const char* kDevice = "eth0";

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "delay: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

struct Port {
  int tun;
  Clock::time_point free{};  // when the sender's line is through with what it was given
};

struct Packet {
  Clock::time_point due;
  int tun;  // where it goes
  std::vector<char> bytes;
  bool operator<(const Packet& other) const { return due > other.due; }  // the earliest on top
};

/// A TUN device in a namespace. Whole TCP segments travel, so that few packets do.
int open_tun(const std::string& name) {
  const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int there = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (home < 0 || there < 0 || setns(there, CLONE_NEWNET) != 0) fail("namespace " + name);
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  std::strncpy(request.ifr_name, kDevice, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (tun < 0 || ioctl(tun, TUNSETIFF, &request) != 0 ||
      ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) {
    fail("TUN device in " + name);
  }
  if (setns(home, CLONE_NEWNET) != 0) fail("namespace of this process");
  close(home);
  close(there);
  return tun;
}

class Switch {
 public:
  Switch(double delay_s, double bytes_per_s)
      : delay_(std::chrono::duration_cast<Clock::duration>(Seconds(delay_s))),
        bytes_per_s_(bytes_per_s) {}

  void join(const std::string& name, in_addr_t address) {
    ports_.push_back({open_tun(name)});
    tun_of_[address] = ports_.back().tun;
  }

  [[noreturn]] void run() {
    std::vector<pollfd> polled;
    for (const Port& port : ports_) polled.push_back({port.tun, POLLIN, 0});
    while (true) {
      const timespec wait = until_next();
      if (ppoll(polled.data(), polled.size(), under_way_.empty() ? nullptr : &wait, nullptr) < 0 &&
          errno != EINTR) {
        fail("ppoll");
      }
      for (Port& port : ports_) take(port);
      deliver();
    }
  }

 private:
  timespec until_next() const {
    if (under_way_.empty()) return {};
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::max(under_way_.top().due - Clock::now(), Clock::duration::zero()));
    return {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  }

  void take(Port& port) {
    std::vector<char> bytes(kLargest);
    for (int i = 0; i < kTurn; ++i) {
      const ssize_t size = read(port.tun, bytes.data(), bytes.size());
      if (size <= 0) return;
      iphdr header;
      if (size_t(size) < kOffloads + sizeof(header)) continue;
      std::memcpy(&header, bytes.data() + kOffloads, sizeof(header));
      const auto to = tun_of_.find(header.daddr);
      const auto now = Clock::now();
      if (header.version != 4 || to == tun_of_.end() || port.free > now + kQueue) continue;
      port.free = std::max(port.free, now) +
                  std::chrono::duration_cast<Clock::duration>(Seconds(double(size) / bytes_per_s_));
      under_way_.push({port.free + delay_, to->second, {bytes.begin(), bytes.begin() + size}});
    }
  }

  void deliver() {
    while (!under_way_.empty() && under_way_.top().due <= Clock::now()) {
      const Packet& packet = under_way_.top();
      // What the device does not take is lost, as on any line.
      [[maybe_unused]] const auto ignored =
          write(packet.tun, packet.bytes.data(), packet.bytes.size());
      under_way_.pop();
    }
  }

  const Clock::duration delay_;
  const double bytes_per_s_;
  std::vector<Port> ports_;
  std::map<in_addr_t, int> tun_of_;
  std::priority_queue<Packet> under_way_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: delay ONE_WAY_MS MBIT NAMESPACE=ADDRESS...\n");
    return 2;
  }
  Switch lines(std::atof(argv[1]) / 1e3, std::atof(argv[2]) * 1e6 / 8);
  for (int i = 3; i < argc; ++i) {
    const std::string end = argv[i];
    const size_t equals = end.find('=');
    in_addr address{};
    if (equals == std::string::npos ||
        inet_pton(AF_INET, end.c_str() + equals + 1, &address) != 1) {
      std::fprintf(stderr, "delay: %s is not NAMESPACE=ADDRESS\n", argv[i]);
      return 2;
    }
    lines.join(end.substr(0, equals), address.s_addr);
  }
  std::puts("ready");
  std::fflush(stdout);
  lines.run();
}
