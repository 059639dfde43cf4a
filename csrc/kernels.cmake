# The kernels without Python: the sources that the extension and the native tests share, and how they are compiled.
#
# One list of sources.  A file whose name ends in an instruction set is compiled for it (see the table below) and is
# only reached through a table of functions chosen at run time; every other file is plain C++17, so the program loads
# anywhere.
option(TWOSTROKE_SANITIZE "Build the kernels with the address and undefined-behaviour sanitizers" OFF)

find_package(Threads REQUIRED)

# No contraction and no fast math anywhere: every fused multiply-add is written out, so that all
# instruction sets round alike.
set(TWOSTROKE_FLAGS -O3 -ffp-contract=off -fno-math-errno -Wall -Wextra)

set(TWOSTROKE_SOURCES
  cpu.cpp
  threads.cpp
  arena.cpp
  format.cpp
  pack.cpp
  dequantize.cpp
  activations.cpp
  gemm.cpp
  measure.cpp
  gemm_portable.cpp
  kernels.cpp
  kernels_portable.cpp
  store.cpp
  attention.cpp
  program.cpp
  sample.cpp
)

# Files for one instruction set; they include no standard templates, so none of their code can leak into other files.
set(TWOSTROKE_AVX2_SOURCES gemm_avx2.cpp kernels_avx2.cpp)
set(TWOSTROKE_AVX512_SOURCES gemm_avx512.cpp kernels_avx512.cpp)
set(TWOSTROKE_AMX_SOURCES gemm_amx.cpp)
set(TWOSTROKE_NEON_SOURCES gemm_neon.cpp kernels_neon.cpp)

set(TWOSTROKE_AVX2_FLAGS -mavx2 -mfma -mf16c -mbmi2)
set(TWOSTROKE_AVX512_FLAGS
  ${TWOSTROKE_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512
  -Wno-maybe-uninitialized -Wno-uninitialized)  # GCC 12 warns inside its own intrinsics
set(TWOSTROKE_AMX_FLAGS ${TWOSTROKE_AVX512_FLAGS} -mamx-tile -mamx-int8)
set(TWOSTROKE_NEON_FLAGS -march=armv8.2-a+dotprod)

set(TWOSTROKE_SETS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(TWOSTROKE_SETS AVX2 AVX512 AMX)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(TWOSTROKE_SETS NEON)
endif()

list(TRANSFORM TWOSTROKE_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
foreach(ISA ${TWOSTROKE_SETS})
  list(TRANSFORM TWOSTROKE_${ISA}_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
  list(APPEND TWOSTROKE_SOURCES ${TWOSTROKE_${ISA}_SOURCES})
  set_source_files_properties(${TWOSTROKE_${ISA}_SOURCES} PROPERTIES COMPILE_OPTIONS "${TWOSTROKE_${ISA}_FLAGS}")
endforeach()

function(twostroke_compile target)
  target_compile_options(${target} PRIVATE ${TWOSTROKE_FLAGS})
  target_link_libraries(${target} PRIVATE Threads::Threads)
  if(TWOSTROKE_SANITIZE)
    target_compile_definitions(${target} PRIVATE TWOSTROKE_SANITIZE)
    target_compile_options(  # -O1 and line numbers alone: with more, one file of checked lanes takes minutes to compile
      ${target} PRIVATE -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
endfunction()
