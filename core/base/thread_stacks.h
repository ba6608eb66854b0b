// SPDX-License-Identifier: Apache-2.0
// What the engine's threads are doing, for the report of a run that stands still.
#pragma once

#include <string>
#include <vector>

namespace cafetiere {

/// The signal by which a thread is asked for its stack. The engine's threads do not block it.
int stack_signal();

/// The kernel's id of the calling thread; gettid() is younger than the oldest glibc that this runs on.
int this_thread();

/// The names of the engine's own threads begin so.
inline constexpr char kThreadPrefix[] = "cft:";

/// The stacks of the engine's threads in this process and of `others` (thread ids), as text: a line
/// for each thread, then its frames, innermost first, as FILE+OFFSET with the function's name where
/// the file tells it. A thread that does not answer within a fifth of a second, since it sleeps
/// in the kernel where no signal wakes it, is named without frames.
std::string thread_stacks(const std::vector<int>& others);

}  // namespace cafetiere
