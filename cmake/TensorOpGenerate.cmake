# tensorop_generate(TARGET OPERATOR op PLATFORM p [OUT dir] [DTYPES f32 f64] [SHAPES suite|MxNxK ...]
#                   [BUDGET 2m | TRIALS n] [SEED s] [OPTIONS ...])
#
# Tunes the kernels of an operator as part of the build and makes the imported library TARGET of them. The search runs
# once: it goes on where it was when a build is interrupted, and is left alone when its library is there. Needs the
# command `tensorop` (docs/how-to/install.md), or TENSOROP_COMMAND with the command that stands for it.

function(tensorop_generate target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OPERATOR;PLATFORM;OUT;BUDGET;TRIALS;SEED" "DTYPES;SHAPES;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tensorop_generate(${target}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_OPERATOR OR NOT arg_PLATFORM)
    message(FATAL_ERROR "tensorop_generate(${target}): OPERATOR and PLATFORM must be given")
  endif()
  if(NOT arg_OUT)
    set(arg_OUT "${CMAKE_CURRENT_BINARY_DIR}/${arg_OPERATOR}-${arg_PLATFORM}")
  endif()
  get_filename_component(out "${arg_OUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")

  set(command ${TENSOROP_COMMAND})
  if(NOT command)
    find_program(TENSOROP_PROGRAM tensorop)
    if(NOT TENSOROP_PROGRAM)
      message(FATAL_ERROR "tensorop_generate(${target}): there is no command tensorop on the PATH; install this project "
                          "as its docs/how-to/install.md says, or set TENSOROP_COMMAND to the command that stands for it")
    endif()
    set(command "${TENSOROP_PROGRAM}")
  endif()

  set(options --platform ${arg_PLATFORM} --out "${out}")
  foreach(name IN ITEMS BUDGET TRIALS SEED)
    if(DEFINED arg_${name})
      string(TOLOWER "--${name}" option)
      list(APPEND options ${option} ${arg_${name}})
    endif()
  endforeach()
  foreach(name IN ITEMS DTYPES SHAPES)
    if(arg_${name})
      string(REPLACE ";" "," values "${arg_${name}}")
      string(TOLOWER "--${name}" option)
      string(REPLACE "--dtypes" "--dtype" option "${option}")
      list(APPEND options ${option} ${values})
    endif()
  endforeach()

  set(library "${out}/lib/libtensorop_${arg_OPERATOR}.so")
  add_custom_command(
    OUTPUT "${library}"
    COMMAND ${command} ${arg_OPERATOR} ${options} ${arg_OPTIONS}
    COMMENT "Tuning ${arg_OPERATOR} for ${arg_PLATFORM}"
    USES_TERMINAL
    VERBATIM)
  add_custom_target(${target}_kernels DEPENDS "${library}")
  file(MAKE_DIRECTORY "${out}/include") # an imported target's include folder must be there when CMake ends
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION "${library}"
    INTERFACE_INCLUDE_DIRECTORIES "${out}/include")
  add_dependencies(${target} ${target}_kernels)
endfunction()
