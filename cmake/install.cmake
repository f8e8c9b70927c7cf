# SPDX-License-Identifier: Apache-2.0
# What `make install` puts where: program, libraries, headers, pkg-config and CMake files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# pkg-config files find the prefix from where they stand, so an installed tree can be moved.
file(RELATIVE_PATH SDX_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

# Libraries that users link, each with the libraries a static link adds.
set(SDX_INSTALLED sardonyx_static sardonyx_shared)
foreach(target sardonyx_vision_static sardonyx_vision_shared)
  if(TARGET ${target})
    list(APPEND SDX_INSTALLED_VISION ${target})
  endif()
endforeach()
install(TARGETS ${SDX_INSTALLED} EXPORT sardonyxTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/sardonyx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(SDX_INSTALLED_VISION)
  install(TARGETS ${SDX_INSTALLED_VISION} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY vision/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  configure_file(cmake/sardonyx_vision.pc.in sardonyx_vision.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/sardonyx_vision.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TARGET sardonyx_codecs)
  install(TARGETS sardonyx_codecs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET sardonyx)
  install(TARGETS sardonyx RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET sardonyx-vision)
  install(TARGETS sardonyx-vision RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_file(cmake/sardonyx.pc.in sardonyx.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sardonyx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(SDX_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/sardonyx)
install(EXPORT sardonyxTargets NAMESPACE sardonyx:: DESTINATION ${SDX_PACKAGE})
configure_package_config_file(cmake/sardonyxConfig.cmake.in ${CMAKE_BINARY_DIR}/sardonyxConfig.cmake
                              INSTALL_DESTINATION ${SDX_PACKAGE})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sardonyxConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sardonyxConfig.cmake ${CMAKE_BINARY_DIR}/sardonyxConfigVersion.cmake
        DESTINATION ${SDX_PACKAGE})
