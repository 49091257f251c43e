#!/usr/bin/env python3
"""The judge of the conformance and end-to-end tests judges rightly."""
import pathlib
import signal
import sys
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import product

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / 'conformance'))
from expectations import Expectations


def why(got, want, rtol=1e-3, atol=1e-7):
    return product.difference(numpy_helper.from_array(np.asarray(got)), numpy_helper.from_array(np.asarray(want)), rtol, atol)


class Difference(unittest.TestCase):

    def test_equal_values_nan_and_infinities_agree(self):
        value = np.float32([1, np.nan, np.inf, -np.inf, 0])
        self.assertEqual(why(value, value), '')

    def test_floats_differ_beyond_the_tolerance_only(self):
        self.assertEqual(why(np.float32([1.0009]), np.float32([1])), '')
        self.assertIn('1 of 2 elements differ, first at [1]', why(np.float32([1, 1.002]), np.float32([1, 1])))

    def test_nan_and_infinity_match_nothing_else(self):
        for got, want in ((np.nan, 1), (1, np.nan), (np.inf, 1), (1, np.inf), (np.inf, -np.inf), (np.nan, np.inf), (3e38, np.inf)):
            self.assertTrue(why(np.float32([got]), np.float32([want])), (got, want))

    def test_integers_and_bools_are_exact(self):
        self.assertTrue(why(np.int64([10_000_001]), np.int64([10_000_000])))
        self.assertTrue(why(np.array([True]), np.array([False])))

    def test_types_and_shapes_count(self):
        self.assertIn('type INT64, expected INT32', why(np.int64([1]), np.int32([1])))
        self.assertIn('shape [1], expected []', why(np.float32([1]), np.float32(1)))
        self.assertIn('shape [0, 2], expected [0, 3]', why(np.zeros((0, 2), np.float32), np.zeros((0, 3), np.float32)))

    def test_strings_are_compared(self):
        self.assertEqual(why(np.array(['a', 'b'], object), np.array(['a', 'b'], object)), '')
        self.assertTrue(why(np.array(['a', 'c'], object), np.array(['a', 'b'], object)))

    def test_bfloat16_is_compared_as_numbers(self):
        make = lambda value: helper.make_tensor('t', TensorProto.BFLOAT16, [1], [value])
        self.assertEqual(product.difference(make(1.), make(1.), 1e-3, 0), '')
        self.assertTrue(product.difference(make(1.), make(1.0625), 1e-3, 0))


class CompareOutputs(unittest.TestCase):

    def test_missing_and_extra_outputs_are_differences(self):
        tensor = numpy_helper.from_array(np.float32([1])).SerializeToString()
        with tempfile.TemporaryDirectory() as got, tempfile.TemporaryDirectory() as want:
            (pathlib.Path(want) / 'output_0.pb').write_bytes(tensor)
            self.assertEqual(product.compare_outputs(got, want, 0, 0), 'output_0.pb was not written')
            (pathlib.Path(got) / 'output_0.pb').write_bytes(tensor)
            self.assertEqual(product.compare_outputs(got, want, 0, 0), '')
            (pathlib.Path(got) / 'output_1.pb').write_bytes(tensor)
            self.assertEqual(product.compare_outputs(got, want, 0, 0), '1 outputs too many')


class Run(unittest.TestCase):

    def test_signals_and_failures_of_firn_are_crashes_but_refusals_are_not(self):
        for command, crashed in (('kill -SEGV $$', True), ('exit 70', True), ('exit 134', True), ('exit 1', False), ('exit 4', False)):
            self.assertEqual(product.run(['sh', '-c', command]).crashed, crashed, command)
        self.assertEqual(product.run(['sh', '-c', 'kill -SEGV $$']).status, -signal.SIGSEGV)

    def test_a_hang_has_no_status(self):
        self.assertIsNone(product.run(['sleep', '5'], timeout=.1).status)


class ExpectedFailures(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / 'list.txt'
        self.path.write_text('# comment\na: has no kernel\nb: slow: very\n')
        self.addCleanup(self.folder.cleanup)

    def test_a_failure_that_is_not_listed_and_a_listed_pass_are_surprises(self):
        lines = list(Expectations(self.path).surprises({'a': 'x', 'c': 'y'}, ['a', 'b', 'c']))
        self.assertEqual(lines[0], 'FAILED c: y')
        self.assertIn('PASSED b', lines[1])
        self.assertEqual(len(lines), 2)

    def test_a_listed_name_without_a_case_is_a_surprise(self):
        self.assertIn('UNKNOWN b', next(Expectations(self.path).unknown(['a'])))

    def test_update_keeps_reasons_that_stand(self):
        Expectations(self.path).write({'a': 'new words', 'c': 'y'}, {'a', 'b', 'c'}, 'header')
        self.assertEqual(Expectations(self.path).reasons, {'a': 'has no kernel', 'c': 'y'})

    def test_an_entry_without_a_reason_is_refused(self):
        self.path.write_text('a\n')
        with self.assertRaises(SystemExit):
            Expectations(self.path)


if __name__ == '__main__':
    unittest.main()
