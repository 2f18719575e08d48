# Language level, warnings, hardening and sanitizers. Build types: Release, Debug; FGW_SANITIZE
# takes "address" (with undefined), "thread" or "fuzzer" (clang; with address and undefined).
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
option(FGW_TESTS "build the tests (needs cmocka)" ON)
set(FGW_SANITIZE "" CACHE STRING "address, thread, fuzzer or empty")

find_program(FGW_CCACHE ccache)
if(FGW_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${FGW_CCACHE})
endif()

add_library(fgw_options INTERFACE)
target_compile_definitions(fgw_options INTERFACE _GNU_SOURCE)
target_include_directories(fgw_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
target_compile_options(fgw_options INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wformat=2
    -Wimplicit-fallthrough -Werror -fno-omit-frame-pointer -g)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(fgw_options INTERFACE -O2 -fstack-protector-strong
        -fstack-clash-protection -fPIE)
    target_compile_definitions(fgw_options INTERFACE _FORTIFY_SOURCE=2)
    target_link_options(fgw_options INTERFACE -pie -Wl,-z,relro,-z,now)
endif()
if(FGW_SANITIZE STREQUAL "address")
    target_compile_options(fgw_options INTERFACE -O1 -fsanitize=address,undefined
        -fno-sanitize-recover=undefined)
    target_link_options(fgw_options INTERFACE -fsanitize=address,undefined)
elseif(FGW_SANITIZE STREQUAL "thread")
    target_compile_options(fgw_options INTERFACE -O1 -fsanitize=thread)
    target_link_options(fgw_options INTERFACE -fsanitize=thread)
elseif(FGW_SANITIZE STREQUAL "fuzzer")
    target_compile_options(fgw_options INTERFACE -O1
        -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
    target_link_options(fgw_options INTERFACE -fsanitize=address,undefined)
endif()
