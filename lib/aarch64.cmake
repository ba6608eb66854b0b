# SPDX-License-Identifier: Apache-2.0
# CMake's toolchain file for arm64: Debian's cross compiler, and the archives that tools/arm64 unpacks.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)

cmake_path(SET root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-root)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Headers that are the same everywhere (jni.h, boost, xxhash, libxsmm.h) may be this machine's.
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_INIT "-isystem ${root}/usr/include/aarch64-linux-gnu")
endforeach()
