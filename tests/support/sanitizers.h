// SPDX-License-Identifier: Apache-2.0
// Whether a test runs in a sanitizer, which maps more memory than any limit allows and keeps what is
// freed.
#pragma once

namespace cafetiere {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace cafetiere
