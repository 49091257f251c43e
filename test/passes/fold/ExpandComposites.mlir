// RUN: firn-mlir-opt %s -split-input-file -firn-expand-composites | FileCheck %s
// RUN: firn-mlir-opt %s -split-input-file -firn-expand-composites -firn-expand-composites | FileCheck %s
// RUN: firn-mlir-opt %s -split-input-file -firn-expand-composites=limit=0 | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: @spells_out_a_fused_activation
// CHECK: %[[SUM:.+]] = firn.add %arg0, %arg1
// CHECK: %[[Y:.+]] = firn.gelu %[[SUM]]
// CHECK: return %[[Y]] : tensor<?x4xf32, #firn.dims<["batch", ""]>>
// NONE-LABEL: @spells_out_a_fused_activation
// NONE: firn.call
func.func @spells_out_a_fused_activation(%x: tensor<?x4xf32, #firn.dims<["batch", ""]>>, %b: tensor<4xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "com.microsoft::BiasGelu"(%x, %b) : (tensor<?x4xf32, #firn.dims<["batch", ""]>>, tensor<4xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @composes_only_the_outputs_that_are_read
// CHECK: firn.layer_normalization
// CHECK-NOT: firn.reduce_sum
func.func @composes_only_the_outputs_that_are_read(%ids: tensor<2x3xi32>, %words: tensor<9x4xf32>, %positions: tensor<5x4xf32>, %g: tensor<4xf32>) -> tensor<*x!firn.unknown> {
  %none = firn.absent : none
  %0:2 = firn.call "com.microsoft::EmbedLayerNormalization"(%ids, %none, %words, %positions, %none, %g, %g) : (tensor<2x3xi32>, none, tensor<9x4xf32>, tensor<5x4xf32>, none, tensor<4xf32>, tensor<4xf32>) -> (tensor<*x!firn.unknown>, tensor<*x!firn.unknown>)
  return %0#0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @leaves_what_its_composition_refuses
// CHECK: firn.call "com.microsoft::MatMulNBits"
func.func @leaves_what_its_composition_refuses(%a: tensor<2x16xf32>, %b: tensor<3x1x8xui8>, %s: tensor<3xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "com.microsoft::MatMulNBits"(%a, %b, %s) {K = 16 : i64, N = 3 : i64, bits = 4 : i64, block_size = 16 : i64} : (tensor<2x16xf32>, tensor<3x1x8xui8>, tensor<3xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @leaves_a_call_whose_input_has_no_known_rank
// CHECK: firn.call "com.microsoft::Gelu"
func.func @leaves_a_call_whose_input_has_no_known_rank(%x: tensor<*xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "com.microsoft::Gelu"(%x) : (tensor<*xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// Trees become tables.
// CHECK-LABEL: @packs_trees
// CHECK: firn.call "firn::Forest"(%arg0, %{{.+}}) {aggregate = "SUM", {{.*}}missing = "SECOND"{{.*}}} : (tensor<?x2xf32, #firn.dims<["n", ""]>>, tensor<{{[0-9]+}}xui16>
func.func @packs_trees(%x: tensor<?x2xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "ai.onnx.ml::TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_falsenodeids = array<i64: 2, 0, 0>, nodes_featureids = array<i64: 1, 0, 0>, nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_nodeids = array<i64: 0, 1, 2>, nodes_treeids = array<i64: 0, 0, 0>, nodes_truenodeids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, target_ids = array<i64: 0, 0>, target_nodeids = array<i64: 1, 2>, target_treeids = array<i64: 0, 0>, target_weights = array<f32: 1.0, 2.0>} : (tensor<?x2xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}
