// SPDX-License-Identifier: Apache-2.0
#include "core/comm/tcp_group.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/comm/collectives.h"
#include "core/comm/one_round.h"
#include "core/comm/shm_endpoint.h"
#include "core/comm/shm_mesh.h"
#include "core/comm/socket_endpoint.h"

namespace cafetiere {
namespace {

using Clock = std::chrono::steady_clock;

// How long a broken data connection waits for the monitor, which may have the root cause.
constexpr auto kReasonTimeout = std::chrono::milliseconds(100);

/// Whether this process may open as many files as the group has connections: a data and a control
/// connection to each other rank.
Status check_open_files(int size) {
  constexpr uint64_t kMore = 16;  // for the listener, events, memory, files of the run
  rlimit limit{};
  std::error_code error;
  uint64_t open = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; it != end && !error;
       it.increment(error)) {
    ++open;
  }
  const uint64_t needed = 2 * uint64_t(size - 1);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || open + needed + kMore <= limit.rlim_cur) return {};
  return invalid_argument(fmt::format(
      "group: {} ranks need {} connections on each rank; this process may open {} files, {} of "
      "which are open: raise the limit (ulimit -n) to {} or more, or use fewer ranks",
      size, needed, limit.rlim_cur, open, open + needed + kMore));
}

Status check_secret(const std::string& secret) {
  if (secret.size() >= kMinSecret) return {};
  return invalid_argument(
      fmt::format("group: the secret has {} bytes and could be guessed: give all ranks the same {} "
                  "random bytes or more, fresh for each run",
                  secret.size(), kMinSecret));
}

Status check(const GroupOptions& o) {
  if (o.size < 1 || o.rank < 0 || o.rank >= o.size) {
    return invalid_argument(fmt::format("group: rank {} of {} does not exist", o.rank, o.size));
  }
  CFT_TRY(check_secret(o.secret));
  if (o.generation.size() > kMaxGeneration) {
    return invalid_argument(fmt::format("group: the generation has {} bytes, at most {} fit",
                                        o.generation.size(), kMaxGeneration));
  }
  if (o.timeout_ms < 100 || o.connect_timeout_ms < 1) {
    return invalid_argument(
        "group: timeout_ms must be at least 100, connect_timeout_ms at least 1");
  }
  return {};
}

}  // namespace

Result<bool> parse_connection(const std::string& text) {
  if (text == "ethernet" || text == "infiniband") return text == "infiniband";
  return invalid_argument(
      fmt::format("connection is '{}': set it to ethernet or infiniband", text));
}

Result<std::unique_ptr<TcpGroup>> TcpGroup::listen(GroupOptions options) {
  CFT_TRY(check(options));
  CFT_TRY(check_open_files(options.size));
  CFT_ASSIGN(Fd listener, listen_on(options.bind, options.ports));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Fd cancelled(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid() || !cancelled.valid()) {
    return io_error("group: cannot make an eventfd: " + errno_text(errno));
  }
  return std::unique_ptr<TcpGroup>(
      new TcpGroup(std::move(options), std::move(listener), std::move(wake), std::move(cancelled)));
}

TcpGroup::TcpGroup(GroupOptions options, Fd listener, Fd wake, Fd cancelled)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      cancelled_(std::move(cancelled)) {
  address_ = local_address(listener_.get()).text();
}

TcpGroup::~TcpGroup() {
  if (monitor_ && !closed_.load()) monitor_->goodbye("");
}

Status TcpGroup::set_secret(std::string secret) {
  if (!listener_.valid()) {
    return invalid_argument("group: the secret cannot change once the ranks connect");
  }
  CFT_TRY(check_secret(secret));
  options_.secret = std::move(secret);
  return {};
}

Status TcpGroup::connect(const std::vector<std::string>& addresses) {
  if (addresses.size() != static_cast<size_t>(size())) {
    return invalid_argument(
        fmt::format("group: {} addresses for {} ranks", addresses.size(), size()));
  }
  auto links = form_mesh(mesh_options(listener_, addresses));
  listener_ = Fd();
  if (!links.ok()) {
    return close(links.status().with_context(fmt::format("rank {} cannot join the group", rank())));
  }
  if (Status status = install(std::move(*links)); !status.ok()) return close(std::move(status));
  CFT_TRY(share_memory());
  CFT_TRY(use_ucx());
  return barrier(this);
}

/// Replaces the transport to ranks on this host with shared memory where possible.
Status TcpGroup::share_memory() {
  CFT_ASSIGN(auto shared, cafetiere::share_memory(this, options_.shared_memory));
  for (int peer = 0; peer < size(); ++peer) {
    if (!shared[peer]) continue;
    engine_->replace(peer, std::make_unique<ShmEndpoint>(name(peer), std::move(shared[peer]),
                                                         links_[peer].data.fd()));
    shares_[peer] = true;
  }
  return {};
}

/// Replaces the transport to ranks without shared memory with UCX, if requested.
Status TcpGroup::use_ucx() {
  std::vector<std::optional<UcxPeer>> peers(size());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank() && !shares_[peer]) peers[peer] = UcxPeer{name(peer), links_[peer].data.fd()};
  }
  CFT_ASSIGN(UcxMesh mesh, join_by_ucx(this, peers, options_.infiniband && !options_.encrypt,
                                       options_.connect_timeout_ms));
  if (options_.infiniband) log_transport(mesh);
  for (size_t peer = 0; peer < mesh.endpoints.size(); ++peer) {
    if (mesh.endpoints[peer]) engine_->replace(int(peer), std::move(mesh.endpoints[peer]));
  }
  return {};
}

void TcpGroup::log_transport(const UcxMesh& mesh) const {
  if (mesh.endpoints.empty()) {
    options_.log.warning(
        "rank {}: connection infiniband: TCP is used between hosts: {}", rank(),
        options_.encrypt ? "the connections are encrypted, which UCX cannot do" : mesh.why_not);
    return;
  }
  const auto reached = std::ranges::find_if(mesh.endpoints, [](const auto& e) { return bool(e); });
  options_.log.notice("rank {}: connection infiniband: {}", rank(),
                      reached == mesh.endpoints.end()
                          ? "all ranks share the memory of this host"
                          : fmt::format("{} is used between hosts", (*reached)->transport()));
}

MeshOptions TcpGroup::mesh_options(const Fd& listener,
                                   const std::vector<std::string>& addresses) const {
  return {.self = {rank(), size(), options_.generation, options_.secret, options_.encrypt},
          .listener = listener.get(),
          .wake = wake_.get(),
          .addresses = addresses,
          .connect_timeout_ms = options_.connect_timeout_ms,
          .silence_timeout_ms = options_.timeout_ms,
          .log = options_.log};
}

Result<PeerLinks> TcpGroup::open_links() {
  if (Status status = check_open_files(size()); !status.ok()) return close(std::move(status));
  CFT_ASSIGN(const Fd listener, listen_on(options_.bind, options_.ports));
  const std::string mine = local_address(listener.get()).text();
  CFT_ASSIGN(const auto texts, all_gather_v(this, std::as_bytes(std::span(mine))));
  std::vector<std::string> addresses;
  for (const auto& text : texts) {
    addresses.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
  }
  auto links = form_mesh(mesh_options(listener, addresses));
  if (!links.ok()) {
    return close(links.status().with_context(fmt::format("rank {} cannot open links", rank())));
  }
  // A control connection that closes would look like a lost rank to ranks that are still
  // connecting.
  CFT_TRY(barrier(this));
  PeerLinks result{.streams = {}, .cancelled = cancelled_.get(), .timeout_ms = options_.timeout_ms};
  for (PeerLink& link : *links) result.streams.push_back(std::move(link.data));
  return result;
}

Status TcpGroup::install(std::vector<PeerLink> links) {
  std::lock_guard lock(mutex_);
  if (!verdict_.ok()) return verdict_;
  links_ = std::move(links);
  shares_.resize(size());
  monitor_ =
      std::make_unique<Monitor>(rank(), links_, options_.timeout_ms, options_.connect_timeout_ms,
                                [this](Status why) { (void)close(std::move(why)); });
  Engine::Endpoints endpoints(size());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    endpoints[peer] = std::make_unique<SocketEndpoint>(name(peer), &links_[peer].data);
  }
  engine_ = std::make_unique<Engine>(rank(), std::move(endpoints), wake_.get(), closed_,
                                     [this](int peer) { monitor_->heard(peer); });
  return monitor_->start();
}

Status TcpGroup::exchange(std::span<const Send> sends, std::span<const Receive> receives) {
  OneRound round(sends, receives);
  return run(&round);
}

Status TcpGroup::run(Schedule* schedule) {
  if (closed_.load()) return verdict();
  if (!engine_) return internal_error("group: exchange() before connect()");
  const auto start = Clock::now();
  Status status = engine_->run(schedule);
  seconds_.store(seconds_.load() + std::chrono::duration<double>(Clock::now() - start).count());
  return status.ok() ? status : give_up(std::move(status));
}

Status TcpGroup::verdict() const {
  std::lock_guard lock(mutex_);
  return verdict_;
}

Status TcpGroup::give_up(Status why) {
  if (why.code() == ErrorCode::kUnavailable) {
    std::unique_lock lock(mutex_);
    closed_signal_.wait_for(lock, kReasonTimeout, [&] { return closed_.load(); });
  }
  return close(std::move(why));
}

/// Closes the group with `why` unless it is already closed; returns the first reason. The sockets
/// are kept until the destructor, because other threads may be using them.
Status TcpGroup::close(Status why) {
  std::lock_guard lock(mutex_);
  if (closed_.load()) return verdict_;
  verdict_ = std::move(why);
  closed_.store(true);
  if (monitor_) monitor_->goodbye(verdict_.message());
  for (const PeerLink& link : links_) {
    for (const Stream* stream : {&link.data, &link.control}) {
      if (stream->valid()) shutdown(stream->fd(), SHUT_RDWR);
    }
  }
  eventfd_write(wake_.get(), 1);
  closed_signal_.notify_all();
  return verdict_;
}

void TcpGroup::cancel() {
  eventfd_write(cancelled_.get(), 1);
  (void)close({ErrorCode::kCancelled, fmt::format("rank {} was cancelled", rank())});
}

Group::Counters TcpGroup::counters() const {
  std::lock_guard lock(mutex_);
  return {.bytes_sent = engine_ ? engine_->bytes_sent() : 0, .seconds = seconds_.load()};
}

}  // namespace cafetiere
