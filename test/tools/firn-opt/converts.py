#!/usr/bin/env python3
"""firn-opt on small models made here: converts without loss, carries unknown operators through, takes its options, and ends with the
documented statuses. What holds for optimised models of all kinds is e2e/optimiser.py's.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BIN = pathlib.Path(sys.argv[1])
failures = []


def opt(*words):
    done = subprocess.run([str(BIN / 'firn-opt'), *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def claim(text, holds, *seen):
    print(('ok      ' if holds else 'FAILED  ') + text)
    if not holds:
        failures.append(text)
        print(*(str(s)[:2000] for s in seen), sep='\n')


def model():
    """A reshape by a shape chain, a foldable sum, an operator that nobody knows, a branch, documentation, metadata."""
    weights = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), 'w')
    nodes = [
        helper.make_node('Shape', ['x'], ['s'], 'shape'),
        helper.make_node('Gather', ['s', 'zero'], ['b'], 'batch'),
        helper.make_node('Concat', ['b', 'six', 'two'], ['t'], 'target', axis=0),
        helper.make_node('Reshape', ['x', 't'], ['r'], 'split'),
        helper.make_node('Add', ['w', 'w'], ['ww'], 'doubles'),
        helper.make_node('MatMul', ['r3', 'ww'], ['m'], 'product'),
        helper.make_node('Reshape', ['r', 'flat'], ['r3'], 'flatten'),
        helper.make_node('Puzzle', ['m'], ['p'], 'riddle', domain='com.example', difficulty=3, weights=[0.5, 1.5], clue='none',
                         doc_string='nobody knows'),
        helper.make_node('If', ['c'], ['i'], 'branch', then_branch=branch('then', 'Relu'), else_branch=branch('else', 'Neg')),
    ]
    constants = [weights] + [numpy_helper.from_array(np.array(v, np.int64), n)
                             for n, v in (('zero', [0]), ('six', [6]), ('two', [2]), ('flat', [-1, 3]))]
    inputs = [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['batch', 12]), helper.make_tensor_value_info('c', TensorProto.BOOL, [])]
    outputs = [helper.make_tensor_value_info('i', TensorProto.FLOAT, None), helper.make_tensor_value_info('r', TensorProto.FLOAT, ['batch', 6, 2])]
    nodes[5], nodes[6] = nodes[6], nodes[5]
    graph = helper.make_graph(nodes, 'puzzle', inputs, outputs, constants, doc_string='a graph')
    made = helper.make_model(graph, producer_name='test', opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.example', 1)])
    made.ir_version = 10
    helper.set_model_props(made, {'author': 'someone', 'empty': ''})
    return made


def branch(name, operator):
    return helper.make_graph([helper.make_node(operator, ['p'], [f'{name}_out'], name)], name, [],
                             [helper.make_tensor_value_info(f'{name}_out', TensorProto.FLOAT, None)])


def converts(folder, source):
    """There and back, in all formats, nothing is lost."""
    paths = [folder / name for name in ('a.fpb', 'a.fpbtxt', 'b.fpb', 'b.onnx')]
    for before, after in zip([source, *paths], paths):
        status, out, err = opt(before, '-o', after, '--no-optimise')
        claim(f'converts {before.suffix} to {after.suffix}', status == 0, out, err)
    claim('text and back is the same binary', paths[0].read_bytes() == paths[2].read_bytes())
    first, last = onnx.load(source), onnx.load(paths[3])
    for saved in (first, last):  # the order of attributes says nothing
        for node in saved.graph.node:
            node.attribute.sort(key=lambda attribute: attribute.name)
    claim('nodes come back with names, attributes and documentation', list(first.graph.node) == list(last.graph.node), first.graph, last.graph)
    key = lambda tensor: tensor.name
    claim('weights come back', sorted(first.graph.initializer, key=key) == sorted(last.graph.initializer, key=key))
    claim('inputs and outputs come back', first.graph.input == last.graph.input and first.graph.output == last.graph.output, last.graph)
    claim('metadata come back', first.metadata_props == last.metadata_props and first.opset_import == last.opset_import and
          first.ir_version == last.ir_version and first.producer_name == last.producer_name, last.metadata_props, last.opset_import)


def optimises(folder, source):
    target = folder / 'optimised.onnx'
    status, out, err = opt(source, '-o', target, f'--report={folder / "report.json"}')
    claim('optimises', status == 0 and 'fold-constants: ' in out, out, err)
    graph = onnx.load(target).graph
    names = [node.op_type for node in graph.node]
    claim('an unknown operator is carried through', 'Puzzle' in names, names)
    claim('shape chains become numbers', 'Shape' not in names and 'Gather' not in names and names.count('Reshape') == 2, names)
    claim('constants are folded', 'Add' not in names, names)
    report = json.loads((folder / 'report.json').read_text())
    claim('reports as JSON', report['schema'] == 'firn.optimise.v1' and report['nodes']['before'] > report['nodes']['after'] and
          report['operators']['Shape'] == {'before': 1, 'after': 0} and report['rewrites']['fold-constants'] >= 1, report)
    opt(source, '-o', target, '--skip=fold-constants')
    claim('leaves out a pass', 'Add' in [node.op_type for node in onnx.load(target).graph.node])
    opt(source, '-o', target, '--passes', 'fold-constants,eliminate-dead')
    names = [node.op_type for node in onnx.load(target).graph.node]
    claim('runs the named passes alone', 'Add' not in names and 'Shape' in names, names)
    status, out, err = opt(source, '-o', target, '--dim', 'batch=2')
    dims = [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in (onnx.load(target).graph.input[0], onnx.load(target).graph.output[1])]
    claim('fixes a dimension of inputs and outputs', status == 0 and dims == [[2, 12], [2, 6, 2]], dims, err)
    status, out, err = opt(source, '-o', folder / 'big.onnx', '--no-optimise', '--external', 16)
    claim('puts constants beside the model', (folder / 'big.onnx.data').exists() and
          (numpy_helper.to_array(onnx.load(folder / 'big.onnx').graph.initializer[0]) == np.arange(12).reshape(3, 4)).all(), err)


def opsets(folder):
    """x * sigmoid(x), which an operator of opset 24 says, in a graph of opset 17."""
    nodes = [helper.make_node('Sigmoid', ['x'], ['s'], 'sigmoid'), helper.make_node('Mul', ['x', 's'], ['y'], 'product')]
    graph = helper.make_graph(nodes, 'silu', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['N', 4])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)])
    source, target = folder / 'silu.onnx', folder / 'silu_out.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), source)
    for options, operators, opset in ([[], ['Sigmoid', 'Mul'], 17], [['--opset', 23], ['Sigmoid', 'Mul'], 23], [['--opset', 24], ['Swish'], 24]):
        status, out, err = opt(source, '-o', target, '--allow-growth', *options)
        made = onnx.load(target)
        claim(f'swish is written where it is asked for: {options}', status == 0 and [node.op_type for node in made.graph.node] == operators and
              made.opset_import[0].version == opset, made, err)
    before = target.read_bytes()
    for opset, words in ((13, 'no form in opset 13'), (99, 'newer than the newest')):
        status, out, err = opt(target, '-o', target, '--opset', opset)
        claim(f'opset {opset} is refused', status == 1 and 'export.opset' in err and words in err, status, err)
    claim('and nothing is written', target.read_bytes() == before)
    status, out, err = opt(source, '-o', target, '--external', 'some')
    claim('--external is refused', status == 2 and "found 'some'" in err, status, err)


def plain():
    """Two layers that change places with a normalisation: what --strict must not touch and --verify can run."""
    rng = np.random.default_rng(3)
    weights = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
               for name, shape in (('w', (4, 3, 3, 3)), ('scale', (4,)), ('shift', (4,)), ('mean', (4,)))]
    weights.append(numpy_helper.from_array(np.ones(4, np.float32), 'variance'))
    nodes = [
        helper.make_node('Conv', ['x', 'w'], ['c'], 'conv'),
        helper.make_node('BatchNormalization', ['c', 'scale', 'shift', 'mean', 'variance'], ['n'], 'norm'),
        helper.make_node('Relu', ['n'], ['r'], 'relu'),
        helper.make_node('Identity', ['r'], ['y'], 'same'),
    ]
    graph = helper.make_graph(nodes, 'plain', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['batch', 3, 'h', 8])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)], weights)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid('', 17)])


def checks(folder, source):
    """--verify, --check-cmd and --bisect: right results, wrong ones, and what cannot be shown."""
    target = folder / 'checked.onnx'
    status, out, err = opt(source, '-o', target, '--verify')
    claim('verifies on three runs unless told otherwise', status == 0 and 'verified: 3 runs' in out + err, status, out, err)
    status, out, err = opt(source, '-o', target, '--verify=5', '--report=json')
    report = json.loads(out)
    claim('the report has the verification', status == 0 and report['verification']['equal'] and report['verification']['runs'] == 5 and
          report['verification']['outputs'][0]['name'] == 'y', out, err)
    status, out, err = opt(source, '-o', target, '--verify', '--atol', 0, '--rtol', 0)
    claim('a difference beyond the tolerance ends with 4 and names the node', status == 4 and 'first different node: ' in out + err, status, out, err)
    status, out, err = opt(source, '-o', target, '--strict', '--verify')
    claim('--strict verifies bit for bit', status == 0 and 'largest difference 0' in out + err, status, out, err)
    count = f"{sys.executable} -c 'import onnx, sys; sys.exit(any(n.op_type == \"{{0}}\" for n in onnx.load(sys.argv[1]).graph.node))'"
    keeps = f"{sys.executable} -c 'import onnx, sys; sys.exit(not any(n.op_type == \"BatchNormalization\" for n in onnx.load(sys.argv[1]).graph.node))'"
    status, out, err = opt(source, '-o', target, '--check-cmd', count.format('Identity'))
    claim('a command that ends with 0 passes', status == 0, status, out, err)
    status, out, err = opt(source, '-o', target, '--check-cmd', keeps + ' {}')
    claim('a command that ends otherwise is a failed check', status == 4 and 'check' in err, status, out, err)
    status, out, err = opt(source, '-o', target, '--bisect', '--check-cmd', keeps)
    claim('--bisect names the pass and the node', status == 4 and 'fold-conv-batch-norm' in out + err and 'norm' in out + err, status, out, err)
    status, out, err = opt(source, '-o', target, '--bisect', '--check-cmd', 'false')
    claim('--bisect says where even no rewrite is right', status == 4 and 'wrong before the first rewrite' in out + err, status, out, err)
    status, out, err = opt(folder / 'a.onnx', '-o', target, '--verify')
    claim('says why an operator that nobody knows cannot be verified', status == 4 and 'not verified' in out + err, status, out, err)
    status, out, err = opt(source, '-o', target, '--report')
    claim('the table says what there was and is', status == 0 and 'BatchNormalization' in out and 'FLOPs' in out and
          'fold-conv-batch-norm: 1' in out, out, err)


def many(folder, source):
    """Files and folders at once."""
    models = folder / 'models'
    (models / 'deep').mkdir(parents=True)
    for name in ('one.onnx', 'deep/two.onnx'):
        (models / name).write_bytes(source.read_bytes())
    (models / 'notes.txt').write_text('no model')
    status, out, err = opt(models, '-o', folder / 'out', '--jobs', 2, '--report=json')
    made = sorted(str(path.relative_to(folder / 'out')) for path in (folder / 'out').rglob('*') if path.is_file())
    claim('a folder goes to a folder', status == 0 and made == ['deep/two.onnx', 'deep/two.onnx.json', 'one.onnx', 'one.onnx.json'], made, out, err)
    claim('as one by one', (folder / 'out/one.onnx').read_bytes() == (folder / 'out/deep/two.onnx').read_bytes())
    status, out, err = opt(models / 'one.onnx', models / 'deep/two.onnx', '-o', folder / 'flat')
    claim('several files go to a folder', status == 0 and (folder / 'flat/one.onnx').exists() and (folder / 'flat/two.onnx').exists(), out, err)
    status, out, err = opt(models / 'one.onnx', models / 'one.onnx', '-o', folder / 'flat')
    claim('two inputs with one output are refused', status == 2 and 'one.onnx' in err, status, err)
    (folder / 'nothing').mkdir()
    status, out, err = opt(folder / 'nothing', '-o', folder / 'flat')
    claim('a folder without graphs is refused', status == 2 and 'nothing' in err, status, err)
    (models / 'broken.onnx').write_text('no model')
    status, out, err = opt(models, '-o', folder / 'rest')
    claim('a broken model leaves the others', status == 1 and (folder / 'rest/one.onnx').exists() and 'broken.onnx' in out + err, status, out, err)


def refuses(folder, source):
    target = folder / 'x.onnx'
    text = folder / 'text.onnx'
    text.write_text('no model')
    cases = [
        ('lists the passes', ['--list-passes'], 0, 'fold-shapes'),
        ('needs an output', [source], 2, '-o'),
        ('needs a model', ['-o', target], 2, 'model'),
        ('an output of an unknown format', [source, '-o', folder / 'x.bin'], 2, '.fpb'),
        ('an unknown pass', [source, '-o', target, '--skip=magic'], 2, "'magic'"),
        ('a malformed shape', [source, '-o', target, '--shape', 'x=axb'], 2, 'x=axb'),
        ('an unknown dimension', [source, '-o', target, '--dim', 'depth=2'], 1, "'depth'"),
        ('a file that is no model', [text, '-o', target], 1, 'text.onnx'),
        ('a missing file', [folder / 'none.onnx', '-o', target], 3, 'none.onnx'),
        ('a folder that is not there', [source, '-o', folder / 'none/x.onnx'], 3, 'none/x.onnx'),
    ]
    for text, words, expected, mentioned in cases:
        status, out, err = opt(*words)
        claim(text, status == expected and mentioned in out + err, status, out, err)
    claim('writes nothing where it fails', not target.exists())


with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name)
    onnx.save(model(), work / 'a.onnx')
    converts(work, work / 'a.onnx')
    optimises(work, work / 'a.onnx')
    refuses(work, work / 'a.onnx')
    onnx.save(plain(), work / 'plain.onnx')
    checks(work, work / 'plain.onnx')
    many(work, work / 'plain.onnx')
    opsets(work)
sys.exit(1 if failures else 0)
