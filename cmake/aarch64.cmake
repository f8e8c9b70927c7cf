# SPDX-License-Identifier: Apache-2.0
# Cross build for 64-bit Arm with Debian's gcc-aarch64-linux-gnu. Jansson for the target lies where
# scripts/setup cross unpacks it; it is linked statically, so programs run with qemu-user and the C
# library of libc6-dev-arm64-cross.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

get_filename_component(SDX_TARGET_ROOT "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root" ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${SDX_TARGET_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${SDX_TARGET_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SDX_TARGET_ROOT})
