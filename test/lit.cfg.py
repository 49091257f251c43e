"""lit's configuration for every .mlir and .test file under test/."""
import os

import lit.formats

config.name = 'firn'
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = ['.mlir', '.test']
config.test_source_root = os.path.join(config.firn_source, 'test')
config.test_exec_root = os.path.join(config.firn_build, 'test', 'lit')
# Folders that hold data or are run by other means.
config.excludes = ['models', 'cases', 'fuzz', 'artifacts']

config.environment['PATH'] = os.pathsep.join(
    [os.path.join(config.firn_build, 'bin'), config.llvm_bin, config.environment.get('PATH', '')])
config.substitutions.append(('%source', config.firn_source))
config.substitutions.append(('%models', os.path.join(config.firn_source, 'test', 'models')))
