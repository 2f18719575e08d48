cmake_minimum_required(VERSION 3.22)
# Writes OUT with FGW_VERSION and FGW_COMMIT; leaves the file alone when nothing changed.
set(commit unknown)
find_program(GIT git)
if(GIT)
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --short=12 HEAD
        OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} status --porcelain --untracked-files=no
        OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
        set(commit ${head})
        if(changes)
            string(APPEND commit "+changes")
        endif()
    endif()
endif()
file(CONFIGURE OUTPUT ${OUT}
    CONTENT "#define FGW_VERSION \"@VERSION@\"\n#define FGW_COMMIT \"@commit@\"\n" @ONLY)
