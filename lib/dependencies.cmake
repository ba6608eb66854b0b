# SPDX-License-Identifier: Apache-2.0
# The libraries of others, all as static archives: the one library that ships holds them. What stands
# here stands in tools/third_party.toml, too.

# cft_archives(NAME ARCHIVE... [HEADER header]): a target of static archives.
function(cft_archives name)
  cmake_parse_arguments(ARG "" "HEADER" "" ${ARGN})
  add_library(${name} INTERFACE)
  foreach(file ${ARG_UNPARSED_ARGUMENTS})
    find_library(CFT_${file} lib${file}.a PATH_SUFFIXES hdf5/serial REQUIRED)
    target_link_libraries(${name} INTERFACE ${CFT_${file}})
  endforeach()
  if(ARG_HEADER)
    find_path(CFT_${name}_INCLUDE ${ARG_HEADER} PATH_SUFFIXES hdf5/serial REQUIRED)
    target_include_directories(${name} SYSTEM INTERFACE ${CFT_${name}_INCLUDE})
  endif()
endfunction()

find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
cft_archives(zlib z HEADER zlib.h)
cft_archives(openssl ssl crypto HEADER openssl/ssl.h)
cft_archives(hdf5 hdf5 sz aec z HEADER hdf5.h)
cft_archives(lmdb lmdb HEADER lmdb.h)
cft_archives(leveldb leveldb snappy HEADER leveldb/db.h)
cft_archives(jpeg jpeg HEADER jpeglib.h)
cft_archives(png png z HEADER png.h)
find_library(SHARPYUV libsharpyuv.a)  # a part of libwebp since 1.3
cft_archives(webp webp HEADER webp/decode.h)
if(SHARPYUV)
  target_link_libraries(webp INTERFACE ${SHARPYUV})
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  cft_archives(libxsmm xsmm xsmmnoblas HEADER libxsmm.h)
else()
  # It generates code for x86 alone: its header, and functions that generate nothing.
  find_path(CFT_libxsmm_INCLUDE libxsmm.h REQUIRED)
  add_library(libxsmm STATIC ${PROJECT_SOURCE_DIR}/lib/xsmm_none.c)
  target_include_directories(libxsmm SYSTEM PUBLIC ${CFT_libxsmm_INCLUDE})
  target_compile_definitions(libxsmm PUBLIC LIBXSMM_PLATFORM_FORCE=1)
  set_target_properties(libxsmm PROPERTIES OUTPUT_NAME cft_xsmm_none)
endif()

add_library(fmt STATIC ${PROJECT_SOURCE_DIR}/lib/fmt.cc)
set_target_properties(fmt PROPERTIES OUTPUT_NAME cft_fmt)  # our file: tools/third_party goes by names

# protobuf's archive of the distributions cannot be part of a shared library, so the runtime is
# compiled from the same version's source, which tools/protobuf gets.
find_package(Protobuf REQUIRED)
set(protobuf_source ${PROJECT_SOURCE_DIR}/build/protobuf-${Protobuf_VERSION}/src/google/protobuf)
if(NOT EXISTS ${protobuf_source})
  message(FATAL_ERROR "no source of protobuf ${Protobuf_VERSION}, the version of the installed "
                      "headers: run tools/setup")
endif()
set(protobuf_files
    any.cc any_lite.cc arena.cc arenastring.cc descriptor.cc descriptor.pb.cc descriptor_database.cc
    dynamic_message.cc extension_set.cc extension_set_heavy.cc generated_enum_util.cc
    generated_message_reflection.cc generated_message_tctable_full.cc
    generated_message_tctable_lite.cc generated_message_util.cc implicit_weak_message.cc
    inlined_string_field.cc io/coded_stream.cc io/strtod.cc io/tokenizer.cc io/zero_copy_stream.cc
    io/zero_copy_stream_impl.cc io/zero_copy_stream_impl_lite.cc map.cc map_field.cc message.cc
    message_lite.cc parse_context.cc reflection_ops.cc repeated_field.cc repeated_ptr_field.cc
    stubs/common.cc stubs/int128.cc stubs/status.cc stubs/stringpiece.cc stubs/stringprintf.cc
    stubs/structurally_valid.cc stubs/strutil.cc stubs/substitute.cc text_format.cc
    unknown_field_set.cc wire_format.cc wire_format_lite.cc)
list(TRANSFORM protobuf_files PREPEND ${protobuf_source}/)
add_library(protobuf STATIC ${protobuf_files})
# Its files leave their macros behind, and some have a name that another has.
set_target_properties(
  protobuf PROPERTIES UNITY_BUILD_BATCH_SIZE 15 UNITY_BUILD_CODE_AFTER_INCLUDE
  "#ifdef PROTOBUF_VERSION\n#include <google/protobuf/port_undef.inc>\n#endif")
set_source_files_properties(${protobuf_source}/extension_set_heavy.cc
                            ${protobuf_source}/generated_message_reflection.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_include_directories(protobuf SYSTEM PRIVATE ${protobuf_source}/../..)
target_compile_definitions(protobuf PRIVATE HAVE_PTHREAD)
target_compile_options(protobuf PRIVATE -O2 -w ${CFT_BASELINE})
if(CFT_SANITIZE)  # it copies no bytes to null where a packed field is empty
  target_compile_options(protobuf PRIVATE -fno-sanitize=nonnull-attribute)
endif()
target_link_libraries(protobuf PUBLIC Threads::Threads)
