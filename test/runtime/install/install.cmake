# Installs the executor into WORK, builds an application that finds it as a package, and runs that on MODEL.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status)
    message(FATAL_ERROR "${ARGV}: ${status}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD}/runtime --prefix ${WORK}/prefix)
run(${WRITE_ARTIFACT} ScaleAdd ${WORK}/model.firn)
run(${CMAKE_COMMAND} -S ${APP} -B ${WORK}/app -DCMAKE_PREFIX_PATH=${WORK}/prefix -DEXAMPLE=${EXAMPLE}
    -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER})
run(${CMAKE_COMMAND} --build ${WORK}/app)
foreach(app static_app shared_app cpp_app)
  run(${WORK}/app/${app} ${WORK}/model.firn)
endforeach()
