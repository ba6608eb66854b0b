// SPDX-License-Identifier: Apache-2.0
// The protocol by which two ranks of a host exchange bytes through shared memory: its states,
// shared words and sizes.
//
// A link has two sides, 0 and 1, and in each direction a writer W and a reader R. W writes `written`,
// `loans`, `lent`, `memories`, `memory_count` and `withdrawn` of its direction, R writes `read` and
// `taken`. `asleep[S]` is set by side S and cleared by either. Counts only grow, from 0.
//
//   of                state           it is so while               who ends it, and how               next
//   ----------------- --------------- ---------------------------- ---------------------------------- ---------
//   ring              empty           written == read              W: copies in, written += n         holding
//                     holding         0 < written - read < size    W: copies in, written += n         or full
//                                                                  R: copies out, read += n           or empty
//                     full            written - read == size       R: copies out, read += n           holding
//   loan k, in slot   free            k >= lent                    W, if lent - taken < slots:        lent
//   k % slots                                                      fills the slot, lent = k + 1
//                     lent            taken <= k < lent            R, once read == its `at`: reads    returned
//                                                                  the bytes, finds withdrawn == 0,
//                                                                  taken = k + 1
//                     returned        k < taken                    nobody; W may change the bytes
//   direction         withdrawn       withdrawn != 0               nobody; R fails when it next looks,
//                                                                  W may change the bytes
//   side S            awake           asleep[S] == 0, no byte      S: asleep[S] = 1, fence            settling
//                     settling        asleep[S] == 1, S looks      S, if there is work: asleep[S] = 0 awake
//                                     at all words again           S, if there is none: poll()        asleep
//                     asleep          asleep[S] == 1, in poll()    the peer: changes a word, fence,   woken
//                                                                  swaps asleep[S] with 0, was 1:
//                                                                  sends a byte on the socket
//                     woken           a byte is in the socket      S: asleep[S] = 0, takes the byte   awake
//
// The words that count are stored with release and loaded with acquire, so a side that sees a count
// also sees the bytes before it. The two fences order "I sleep, is there work?" against "here is
// work, do you sleep?": without either, both sides could miss each other. A peer may wake a side that
// is only settling; the byte then ends its next poll() early, which is harmless.
// tests/interleaving explores every order in which the two sides can take these steps.
#pragma once

#include <atomic>
#include <cstddef>

#ifdef CFT_SHM_STEPS
#include CFT_SHM_STEPS  // the same, with a scheduler's hooks and smaller sizes
#else

namespace cafetiere {

/// A number in memory that both sides access.
template <class T>
using SharedWord = std::atomic<T>;

inline void shared_fence(std::memory_order order) { std::atomic_thread_fence(order); }

/// Called before other bytes of the memory are written, or `count` at `bytes` are read.
inline void shared_access(const void* /*bytes*/ = nullptr, size_t /*count*/ = 0) {}

inline constexpr size_t kRingBytes = 512 << 10;    // per direction: stays in a core's cache
inline constexpr size_t kRingChunk = 64 << 10;     // copied before the peer sees it
inline constexpr size_t kLoanSlots = 4;            // concurrent loans
inline constexpr size_t kShortestLoan = 64 << 10;  // shorter messages go through the ring
inline constexpr size_t kLoanChunk = 256 << 10;    // copied before the other direction gets a turn

}  // namespace cafetiere

#endif
