#!/usr/bin/env python3
"""Calls reference kernels with broken inputs: each must compute something or refuse with a message, never crash.

    mutated_calls.py LIBRARY [--seed N] [--count N] [--only PATTERN] [--verbose]

A call is one of ONNX's node tests with one to three mutations of shapes, values, element types, attributes or the number
of inputs. The seed and the number of the call name a call for good. With an instrumented library (asan preset) reads and
writes out of bounds end the run; --verbose then says in which call.
"""
import argparse
import copy
import fnmatch
import random
import sys
import warnings

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper
from onnx.backend.test.loader import load_model_tests

import reference_kernels

INTEGERS = [0, 1, -1, 2, -2, 3, 5, 7, 127, -128, 255, 1000, 2**31 - 1, -(2**31), 2**31, 2**40, -(2**40), 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.7, 1e30, -1e30, 1e-40, float("nan"), float("inf"), float("-inf")]
WORDS = [b"", b"x", b"none", b"max", b"reflect", b"linear", b"cubic", b"wrap", b"VALID", b"SAME_UPPER", b"NOTSET", b"LEFT"]
NUMPY_TYPES = {t: helper.tensor_dtype_to_np_dtype(t) for t in range(1, 27) if t != TensorProto.STRING}


class Mutator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def shape(self, array):
        dims, choice = list(array.shape), self.random.randrange(5)
        if choice == 0 and dims:
            dims[self.random.randrange(len(dims))] = self.random.choice([0, 1, 2, 3, 5])
        elif choice == 1 and dims:
            dims.pop(self.random.randrange(len(dims)))
        elif choice == 2 and len(dims) < 8:
            dims.insert(self.random.randrange(len(dims) + 1), self.random.choice([0, 1, 2]))
        elif choice == 3:
            self.random.shuffle(dims)
        else:
            dims = [self.random.choice([0, 1, 2, 3]) for _ in range(self.random.randrange(5))]
        if array.size == 0:
            return np.zeros(dims, array.dtype)
        return np.resize(array.reshape(-1), dims) if np.prod(dims, dtype=np.int64) < 20000 else array

    def values(self, array):
        if array.size == 0 or array.dtype == object:
            return array
        flat = array.copy().reshape(-1)
        for _ in range(self.random.randrange(1, 4)):
            numbers = INTEGERS if np.issubdtype(array.dtype, np.integer) else FLOATS
            flat[self.random.randrange(flat.size)] = np.array(self.random.choice(numbers)).astype(array.dtype)
        return flat.reshape(array.shape)

    def input(self, node, inputs):
        i = self.random.randrange(len(inputs))
        if inputs[i] is None:
            return
        dtype, array = inputs[i]
        choice = self.random.randrange(8)
        if choice < 4:
            inputs[i] = (dtype, self.shape(array))
        elif choice < 7:
            inputs[i] = (dtype, self.values(array))
        elif array.dtype != object:
            other = self.random.choice(list(NUMPY_TYPES))
            inputs[i] = (other, array.astype(NUMPY_TYPES[other]))

    def count(self, node, inputs):
        choice = self.random.randrange(4)
        if choice < 2:
            inputs[self.random.randrange(len(inputs))] = None
        elif choice == 2:
            inputs.pop()
        else:
            inputs.append(self.random.choice(inputs))

    def attribute(self, node, inputs):
        if not node.attribute or self.random.random() < 0.2:
            known = onnx.defs.get_schema(node.op_type, node.domain).attributes
            names = [name for name, a in known.items() if a.type == onnx.defs.OpSchema.AttrType.INT]
            names = [name for name in names if name not in {a.name for a in node.attribute}]
            if names:
                node.attribute.append(helper.make_attribute(self.random.choice(names), self.random.choice(INTEGERS)))
            return
        attribute = self.random.choice(node.attribute)
        if self.random.random() < 0.2:
            node.attribute.remove(attribute)
        elif attribute.type == AttributeProto.INT:
            attribute.i = self.random.choice(INTEGERS)
        elif attribute.type == AttributeProto.FLOAT:
            attribute.f = self.random.choice(FLOATS)
        elif attribute.type == AttributeProto.STRING:
            attribute.s = self.random.choice(WORDS)
        elif attribute.type == AttributeProto.INTS and attribute.ints:
            choice = self.random.randrange(3)
            if choice == 0:
                attribute.ints[self.random.randrange(len(attribute.ints))] = self.random.choice(INTEGERS)
            elif choice == 1:
                attribute.ints.pop()
            else:
                attribute.ints.append(self.random.choice(INTEGERS))

    def mutated(self, node, inputs):
        node, inputs = copy.deepcopy(node), list(inputs)
        for _ in range(self.random.randrange(1, 4)):
            mutate = self.random.choices([self.input, self.count, self.attribute], [6, 1, 3])[0]
            if inputs or mutate == self.attribute:
                mutate(node, inputs)
        return node, inputs


def calls_by_operator(kernels, pattern):
    """(node, inputs) of the node tests of one node, for each operator."""
    calls = {}
    for case in load_model_tests(kind="node"):
        graph = case.model.graph
        node = graph.node[0]
        if len(graph.node) != 1 or node.op_type == "Constant" or not fnmatch.fnmatchcase(node.op_type, pattern):
            continue
        if reference_kernels.why_skipped(kernels, case.model):
            continue
        values = dict(zip([v.name for v in graph.input], reference_kernels.tensors_of(case.data_sets[0][0], graph.input)))
        if all(not name or name in values for name in node.input):
            calls.setdefault(node.op_type, []).append((node, [values.get(name) for name in node.input]))
    return calls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--only", default="*", help="operators to call, e.g. 'Reduce*'")
    parser.add_argument("--verbose", action="store_true", help="print each call before it runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kernels = reference_kernels.Kernels(options.library)
    calls = calls_by_operator(kernels, options.only)
    computed = refused = 0
    for number in range(options.count):
        mutator = Mutator(f"{options.seed}/{number}")
        node, inputs = mutator.mutated(*mutator.random.choice(calls[mutator.random.choice(sorted(calls))]))
        if options.verbose:
            print(f"call {number} of seed {options.seed}: {node.op_type}", flush=True)
        try:
            kernels.evaluate(kernels.find(node), node, inputs)
            computed += 1
        except reference_kernels.Refused as refusal:
            if not str(refusal).split(": ", 2)[-1]:
                print(f"call {number} of seed {options.seed}: {node.op_type} refused without a message")
                return 1
            refused += 1
        except (MemoryError, ValueError, OverflowError, UnicodeDecodeError):
            pass  # an output too large for this script, or text that is no UTF-8
    print(f"{computed} computed, {refused} refused, {options.count - computed - refused} too large")
    return 0


if __name__ == "__main__":
    sys.exit(main())
