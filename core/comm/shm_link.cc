#include "core/comm/shm_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace cafetiere {
namespace {

constexpr size_t kRingBytes = 512 << 10;             // of each direction: stays in a core's cache
constexpr size_t kChunk = 64 << 10;                  // copied before the peer hears of it
constexpr size_t kLong = 1 << 20;                    // a read whose end the cache would not hold
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;  // mapped memory cannot vanish under us

Status os_error(const char* what) {
  return io_error(fmt::format("shared memory: cannot {}: {}", what, errno_text(errno)));
}

Status broken() {
  return internal_error("shared memory: the peer wrote an index that makes no sense");
}

/// Calls copy(bytes of part, length) for the first `count` bytes of `parts`.
template <class Copy>
void for_parts(std::span<const iovec> parts, size_t count, const Copy& copy) {
  for (const iovec& part : parts) {
    const size_t n = std::min(count, part.iov_len);
    if (n > 0) copy(static_cast<std::byte*>(part.iov_base), n);
    count -= n;
  }
}

/// Copies past the cache, which a long array would only sweep: it need not be read before it is
/// written, and the ring stays in.
void copy_past_cache(std::byte* to, const std::byte* from, size_t bytes) {
  size_t done = 0;
#ifdef __AVX__
  done = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % 32);
  std::memcpy(to, from, done);
  for (; done + 32 <= bytes; done += 32) {
    _mm256_stream_ps(reinterpret_cast<float*>(to + done),
                     _mm256_loadu_ps(reinterpret_cast<const float*>(from + done)));
  }
  _mm_sfence();
#endif
  std::memcpy(to + done, from + done, bytes - done);
}

size_t total(std::span<const iovec> parts) {
  size_t sum = 0;
  for (const iovec& part : parts) sum += part.iov_len;
  return sum;
}

}  // namespace

/// Bytes written and read since the beginning; their difference is what the ring holds.
struct ShmLink::Ring {
  alignas(64) std::atomic<uint64_t> written{0};
  alignas(64) std::atomic<uint64_t> read{0};
  alignas(64) std::array<std::byte, kRingBytes> bytes;

  /// Calls copy(bytes of the ring, length) for the `count` bytes from index `at`.
  template <class Copy>
  void for_range(uint64_t at, size_t count, const Copy& copy) {
    const size_t first = std::min(count, kRingBytes - at % kRingBytes);
    copy(bytes.data() + at % kRingBytes, first);
    if (count > first) copy(bytes.data(), count - first);
  }
};

struct ShmLink::Shared {
  std::array<uint8_t, 32> token;
  alignas(64) std::atomic<uint32_t> asleep[2];
  Ring rings[2];  // written by side 0, by side 1
};

ShmLink::ShmLink(void* memory, int side)
    : shared_(static_cast<Shared*>(memory)),
      side_(side),
      out_(&shared_->rings[side]),
      in_(&shared_->rings[1 - side]) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
}

ShmLink::~ShmLink() { munmap(shared_, sizeof(Shared)); }

Result<std::unique_ptr<ShmLink>> ShmLink::map(int fd, int side) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return os_error("map it");
  return std::unique_ptr<ShmLink>(new ShmLink(memory, side));
}

Result<std::unique_ptr<ShmLink>> ShmLink::create() {
  Fd fd(memfd_create("cafetiere", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), sizeof(Shared)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return os_error("make it");
  }
  CFT_ASSIGN(auto link, map(fd.get(), 0));
  ShmAddress& address = link->address_;
  address.pid = getpid();
  address.fd = fd.get();
  if (RAND_bytes(address.token.data(), static_cast<int>(address.token.size())) != 1) {
    return internal_error("shared memory: the system gave no random bytes");
  }
  link->shared_->token = address.token;  // the rest is zero, as the indices must be
  link->fd_ = std::move(fd);
  return link;
}

Result<std::unique_ptr<ShmLink>> ShmLink::open(const ShmAddress& address) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.fd);
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return os_error("find it");
  if (!S_ISREG(about.st_mode) || about.st_size != static_cast<off_t>(sizeof(Shared))) {
    return io_error("shared memory: the peer's is not there");
  }
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return os_error("open it");
  if ((fcntl(fd.get(), F_GET_SEALS) & kSeals) != kSeals) return os_error("trust it");
  CFT_ASSIGN(auto link, map(fd.get(), 1));
  const auto& token = link->shared_->token;
  if (CRYPTO_memcmp(token.data(), address.token.data(), token.size()) != 0) {
    return io_error("shared memory: what is there is not the peer's");
  }
  return link;
}

Result<size_t> ShmLink::write(std::span<const iovec> parts) {
  const uint64_t held = written_ - out_->read.load(std::memory_order_acquire);
  if (held > kRingBytes) return broken();
  const size_t count = std::min({total(parts), kRingBytes - held, kChunk});
  uint64_t at = written_;
  for_parts(parts, count, [&](const std::byte* from, size_t n) {
    out_->for_range(at, n, [&](std::byte* to, size_t bytes) {
      std::memcpy(to, from, bytes);
      from += bytes;
    });
    at += n;
  });
  written_ = at;
  out_->written.store(written_, std::memory_order_release);
  return count;
}

Result<size_t> ShmLink::read(std::span<const iovec> parts) {
  const uint64_t held = in_->written.load(std::memory_order_acquire) - read_;
  if (held > kRingBytes) return broken();
  const size_t count = std::min({total(parts), static_cast<size_t>(held), kChunk});
  const bool is_long = total(parts) >= kLong;
  uint64_t at = read_;
  for_parts(parts, count, [&](std::byte* to, size_t n) {
    in_->for_range(at, n, [&](const std::byte* from, size_t bytes) {
      if (is_long) {
        copy_past_cache(to, from, bytes);
      } else {
        std::memcpy(to, from, bytes);
      }
      to += bytes;
    });
    at += n;
  });
  read_ = at;
  in_->read.store(read_, std::memory_order_release);
  return count;
}

// A side that sleeps first says so and then looks once more; one that moved bytes first publishes
// them and then looks whether the other sleeps. The fences keep either from missing the other.

bool ShmLink::may_sleep(bool writes, bool reads) {
  shared_->asleep[side_].store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool room = written_ - out_->read.load(std::memory_order_acquire) < kRingBytes;
  const bool bytes = in_->written.load(std::memory_order_acquire) != read_;
  return !(writes && room) && !(reads && bytes);
}

void ShmLink::woke() { shared_->asleep[side_].store(0, std::memory_order_relaxed); }

bool ShmLink::must_wake_peer() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic<uint32_t>& asleep = shared_->asleep[1 - side_];
  return asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0) != 0;
}

}  // namespace cafetiere
