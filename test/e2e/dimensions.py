#!/usr/bin/env python3
"""firnc --dim with a range (memory announced, other sizes refused) and with several sizes (variants beside the general model)."""
import argparse
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import firn_api
import product

WIDTH = 256


def model():
    """y = softmax(relu(x W) V) for x[batch, WIDTH]."""
    random = np.random.default_rng(3)
    weights = {name: random.standard_normal((WIDTH, WIDTH), np.float32) / 16 for name in 'WV'}
    nodes = [helper.make_node('MatMul', ['x', 'W'], ['a']), helper.make_node('Relu', ['a'], ['b']),
             helper.make_node('MatMul', ['b', 'V'], ['c']), helper.make_node('Softmax', ['c'], ['y'], axis=-1)]
    port = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ['batch', WIDTH]) for name in 'xy']
    graph = helper.make_graph(nodes, 'dense', port[:1], port[1:], [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=9), weights


def expected(x, weights):
    c = np.maximum(x @ weights['W'], 0) @ weights['V']
    e = np.exp(c - c.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Test:

    def __init__(self, args, work):
        self.tools, self.library, self.work, self.failed = product.Tools(args.build), firn_api.Library(args.build), work, 0
        proto, self.weights = model()
        self.source = work / 'dense.onnx'
        onnx.save(proto, self.source)

    def claim(self, what, holds, more=''):
        print(f'{"ok  " if holds else "FAIL"} {what}' + ('' if holds else f': {more}'))
        self.failed += not holds

    def compile(self, name, *options):
        result = self.tools.compile(self.source, self.work / name, *options)
        self.claim(f'firnc {" ".join(options)} compiles', result.status == 0, result.message)
        return self.work / name

    def inspect(self, artifact, *options):
        # What firn-inspect prints, without its messages.
        done = product.run([self.tools.bin / 'firn-inspect', artifact, '--json', *options])
        return json.loads(done.message)

    def run(self, session, batch):
        x = np.random.default_rng(batch).standard_normal((batch, WIDTH), np.float32)
        session.bind([x])
        session.run()
        got = next(session.results())
        self.claim(f'batch {batch} is right', got.shape == x.shape and np.allclose(got, expected(x, self.weights), rtol=1e-3, atol=1e-5))

    def ranges(self):
        artifact = self.compile('range.firn', '--dim', 'batch=2..32')
        described = self.inspect(artifact)
        arena = described['memory']['arena_bytes']
        self.claim('the range is listed', described['ranges'] == {'batch': [2, 32]}, described['ranges'])
        self.claim('the arena is announced', isinstance(arena, int) and arena >= 0, described['memory'])
        compiled = firn_api.Model(self.library, artifact)
        session = firn_api.Session(compiled, 1)
        self.run(session, 32)
        most = session.memory()
        for batch in (2, 3, 17, 32):
            self.run(session, batch)
        self.claim('sizes in the range allocate nothing more', session.memory() == most, (most, session.memory()))
        self.claim('the arena is what the largest size needs', self.inspect(artifact, '--dim', 'batch=32')['memory']['arena_bytes'] == arena)
        for batch in (1, 33):
            try:
                session.bind([np.zeros((batch, WIDTH), np.float32)])
                session.run()
                self.claim(f'batch {batch} is refused', False)
            except firn_api.Failure as failure:
                self.claim(f'batch {batch} is refused with the range', '2 to 32' in str(failure) and 'batch' in str(failure), failure)
        session.close()
        compiled.close()

    def bounds(self):
        artifact = self.compile('bounds.firn')
        memory = self.inspect(artifact)['memory']
        self.claim('an arena without a range is no number', memory['arena_bytes'] is None, memory)
        for batch in (1, 7, 100):
            arena = self.inspect(artifact, '--dim', f'batch={batch}')['memory']['arena_bytes']
            least, most = (eval(memory[f'arena_bytes_at_{side}'], {'batch': batch, 'max': max}) for side in ('least', 'most'))
            self.claim(f'the arena of batch {batch} lies between the formulas', least <= arena <= most, (least, arena, most))

    def variants(self):
        general, artifact = self.compile('general.firn'), self.compile('variants.firn', '--dim', 'batch=1,4,16')
        described = self.inspect(artifact)
        self.claim('the variants are listed', [entry['for'] for entry in described['variants']] == ['batch 1', 'batch 4', 'batch 16'],
                   described['variants'])
        once = self.inspect(general)['memory']['weights_bytes']
        self.claim('weights are shared', described['memory']['weights_bytes'] < 1.1 * once, (described['memory'], once))
        compiled = firn_api.Model(self.library, artifact)
        for threads in (1, 2):
            session = firn_api.Session(compiled, threads)
            for batch, variant in ((1, 0), (4, 1), (5, -1), (16, 2), (64, -1), (1, 0), (16, 2), (5, -1)):
                self.run(session, batch)
                took = session.calls.firn_session_variant(session.pointer)
                self.claim(f'batch {batch} takes variant {variant}', took == variant, took)
            session.close()
        compiled.close()
        both = self.compile('both.firn', '--dim', 'batch=1,8', '--proof')
        verified = product.run([self.tools.bin / 'firn-run', both, '--verify'])
        self.claim('a model with variants has a proof', verified.status == 0, verified.message)

    def refusals(self):
        for value in ('batch=', 'batch=4..2', 'batch=1..', 'batch=..3', 'batch=1,', 'batch=1,1', 'batch=1,x', 'batch=-1', 'batch=1..x',
                      'batch=' + ','.join(map(str, range(1, 18)))):
            done = product.run([self.tools.bin / 'firnc', self.source, '-o', self.work / 'x.firn', '--dim', value])
            self.claim(f'--dim {value[:20]} is a wrong command line', done.status == 2 and '--dim' in done.message, (done.status, done.message))
        for value in ('nothing=1..4', 'nothing=1,2'):
            done = product.run([self.tools.bin / 'firnc', self.source, '-o', self.work / 'x.firn', '--dim', value])
            self.claim(f'--dim {value} names no dimension', done.status == 1 and "'nothing'" in done.message, (done.status, done.message))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', type=pathlib.Path, default=product.ROOT / 'build/dev')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        test = Test(args, pathlib.Path(work))
        test.bounds()
        test.ranges()
        test.variants()
        test.refusals()
    print(f'{test.failed} claims failed' if test.failed else 'all claims hold')
    return bool(test.failed)


if __name__ == '__main__':
    sys.exit(main())
