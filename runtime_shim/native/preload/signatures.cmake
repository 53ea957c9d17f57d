# Sets `all`: one text with every signature of ../../signatures.
file(GLOB signature_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../../signatures/*.sig)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${signature_files})
set(all ${CMAKE_CURRENT_BINARY_DIR}/signatures.txt)
file(WRITE ${all} "")
foreach(file ${signature_files})
  file(READ ${file} text)
  file(APPEND ${all} "${text}")
endforeach()
