# SPDX-License-Identifier: Apache-2.0
# find_package(cafetiere): the target cafetiere::cafetiere, wherever the installed folder has been moved.
if(NOT TARGET cafetiere::cafetiere)
  get_filename_component(cafetiere_prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
  add_library(cafetiere::cafetiere SHARED IMPORTED)
  set_target_properties(
    cafetiere::cafetiere
    PROPERTIES IMPORTED_LOCATION ${cafetiere_prefix}/lib/libcafetiere.so IMPORTED_NO_SONAME ON
               INTERFACE_INCLUDE_DIRECTORIES ${cafetiere_prefix}/include)
endif()
