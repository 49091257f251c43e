#!/usr/bin/env python3
"""firn-opt --inputs, --outputs, --rename and --rename-dim: the parts compute what the whole does (under ONNX Runtime), names are those
asked for, and what cannot be done is refused by name.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BIN = pathlib.Path(sys.argv[1])
failures = []


def opt(*words):
    done = subprocess.run([str(BIN / 'firn-opt'), *map(str, words)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def claim(text, holds, *seen):
    print(('ok      ' if holds else 'FAILED  ') + text)
    if not holds:
        failures.append(text)
        print(*(str(s)[:2000] for s in seen), sep='\n')


def branch(name, operator):
    """Reads `scaled` of the graph around it."""
    return helper.make_graph([helper.make_node(operator, ['scaled'], [f'{name}_out'], name)], name, [],
                             [helper.make_tensor_value_info(f'{name}_out', TensorProto.FLOAT, None)])


def model():
    nodes = [
        helper.make_node('Mul', ['x', 'w'], ['scaled'], 'scale'),
        helper.make_node('If', ['c'], ['picked'], 'choose', then_branch=branch('then', 'Exp'), else_branch=branch('else', 'Neg')),
        helper.make_node('Split', ['picked', 'halves'], ['left', 'right'], 'halve', axis=1),
        helper.make_node('Sub', ['left', 'right'], ['difference'], 'subtract'),
        helper.make_node('Add', ['difference', 'mask'], ['y'], 'mask_it'),
        helper.make_node('Puzzle', ['x'], ['riddle'], 'riddle', domain='com.example'),
        helper.make_node('Puzzle', ['riddle'], ['z'], 'more', domain='com.example'),
    ]
    constants = [numpy_helper.from_array(np.array([1, -2, 3, 0.5], np.float32), 'w'), numpy_helper.from_array(np.array([2, 2]), 'halves')]
    inputs = [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['batch', 4]), helper.make_tensor_value_info('c', TensorProto.BOOL, []),
              helper.make_tensor_value_info('mask', TensorProto.FLOAT, ['batch', 2])]
    outputs = [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['batch', 2]), helper.make_tensor_value_info('z', TensorProto.FLOAT, None)]
    return helper.make_model(helper.make_graph(nodes, 'parts', inputs, outputs, constants), ir_version=10,
                             opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.example', 1)])


def run(path, feeds):
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=['CPUExecutionProvider'])
    return session.run(None, {value.name: feeds[value.name] for value in session.get_inputs()})


def ports(values):
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}


def cuts(folder, source):
    x, mask = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4), np.full((3, 2), 7, np.float32)
    whole, front, back = folder / 'whole.onnx', folder / 'front.onnx', folder / 'back.onnx'
    for extra in ([], ['--no-optimise']):
        how = ' '.join(extra) or 'optimised'
        seen = [opt(source, '-o', whole, '--outputs', 'y', *extra), opt(source, '-o', front, '--outputs', 'left,scaled', *extra),
                opt(source, '-o', back, '--inputs', 'left,scaled,c,mask', '--outputs', 'y', *extra)]
        claim(f'parts are cut out, {how}', [status for status, _ in seen] == [0, 0, 0], *seen)
        for condition in (True, False):
            feeds = {'x': x, 'mask': mask, 'c': np.array(condition)}
            left, scaled = run(front, feeds)
            parts, once = run(back, {**feeds, 'left': left, 'scaled': scaled})[0], run(whole, feeds)[0]
            claim(f'two parts are the whole, {how}, {condition}', np.array_equal(parts, once) and np.abs(once).max() > 1, parts, once)
        graph = onnx.load(back).graph
        claim(f'inputs have their inferred types, in the order asked for, {how}',
              list(ports(graph.input).items()) == [('left', ['batch', 2]), ('scaled', ['batch', 4]), ('c', []), ('mask', ['batch', 2])],
              ports(graph.input))
        claim(f'only what is needed stays, {how}', not any(node.op_type in ('Puzzle', 'Mul') for node in graph.node) and
              [tensor.name for tensor in graph.initializer] != ['w'], graph)
    status, err = opt(source, '-o', back, '--inputs', 'w,x', '--outputs', 'scaled')
    claim('an initializer becomes an input', status == 0 and np.array_equal(run(back, {'x': x, 'w': np.full(4, 2, np.float32)})[0], 2 * x), err)
    status, err = opt(source, '-o', back, '--inputs', 'x,mask', '--outputs', 'scaled')
    claim('an input that nothing reads is warned of and kept', status == 0 and "'mask'" in err and list(ports(onnx.load(back).graph.input)) == ['x', 'mask'], err)


def renames(folder, source):
    target = folder / 'renamed.onnx'
    status, err = opt(source, '-o', target, '--outputs', 'y', '--rename', 'x=mask,mask=x', '--rename', 'y=result', '--rename', 'scaled=inner',
                      '--rename-dim', 'batch=items')
    claim('renames', status == 0, err)
    graph = onnx.load(target).graph
    claim('names swap, dimensions follow', ports(graph.input) == {'mask': ['items', 4], 'c': [], 'x': ['items', 2]} and
          ports(graph.output) == {'result': ['items', 2]}, ports(graph.input), ports(graph.output))
    branches = [a.g for node in graph.node if node.op_type == 'If' for a in node.attribute]
    claim('values inside of branches are renamed', branches and all(b.node[0].input[0] == 'inner' for b in branches), graph)
    x, mask = np.ones((2, 4), np.float32), np.zeros((2, 2), np.float32)
    y = run(target, {'mask': x, 'x': mask, 'c': np.array(False)})[0]
    claim('the renamed model computes the same', np.array_equal(y, [[2, 2.5]] * 2), y)


def refuses(folder, source):
    target = folder / 'never.onnx'
    cases = [
        ('an unknown input', ['--inputs', 'scald', '--outputs', 'y'], 1, "did you mean 'scaled'"),
        ('an unknown output', ['--outputs', 'differences'], 1, "did you mean 'difference'"),
        ('a value inside of a branch', ['--outputs', 'then_out'], 1, 'no value of the main graph'),
        ('an input named twice', ['--inputs', 'x,x'], 1, 'twice'),
        ('what the part needs beyond its inputs', ['--inputs', 'scaled', '--outputs', 'y'], 1, "needs input 'mask' too, which node 'mask_it' reads"),
        ('all that it needs', ['--inputs', 'scaled', '--outputs', 'y'], 1, "needs input 'c' too"),
        ('a type that nobody knows', ['--inputs', 'riddle', '--outputs', 'z'], 1, "type of 'riddle' is not known"),
        ('an unknown name', ['--rename', 'xx=new'], 1, "did you mean 'x'"),
        ('a name that is taken', ['--rename', 'x=scaled'], 1, "value 'scaled' already"),
        ('a name of a branch that is taken', ['--rename', 'x=then_out'], 1, "value 'then_out' already"),
        ('two values with one name', ['--rename', 'x=new,c=new'], 1, "'x' becomes 'new' already"),
        ('one value renamed twice', ['--rename', 'x=a,x=b'], 1, 'renamed twice'),
        ('a malformed renaming', ['--rename', 'x'], 2, 'OLD=NEW'),
        ('an unknown dimension', ['--rename-dim', 'bach=n'], 1, "did you mean 'batch'"),
        ('a malformed renaming of a dimension', ['--rename-dim', '=n'], 2, 'OLD=NEW'),
    ]
    for text, words, expected, mentioned in cases:
        status, err = opt(source, '-o', target, *words)
        claim('refuses ' + text, status == expected and mentioned in err, status, err)
    claim('writes nothing where it refuses', not target.exists())


with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name)
    onnx.save(model(), work / 'a.onnx')
    cuts(work, work / 'a.onnx')
    renames(work, work / 'a.onnx')
    refuses(work, work / 'a.onnx')
sys.exit(1 if failures else 0)
