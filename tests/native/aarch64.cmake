# Cross-compiling for 64-bit Arm with Debian's g++-aarch64-linux-gnu; static, so that qemu-aarch64 needs no Arm system.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
