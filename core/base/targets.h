// SPDX-License-Identifier: Apache-2.0
// Whether a file may have functions for another instruction set than the library's, by GCC's pragmas. Clang,
// which builds the fuzzers, has others: there the plain forms serve.
#pragma once

#if defined(__x86_64__) && !defined(__clang__)
#define CFT_OTHER_TARGETS 1
#else
#define CFT_OTHER_TARGETS 0
#endif
