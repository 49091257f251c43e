// RUN: firn-mlir-opt %s --firn-recognize-activations --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s --firn-recognize-activations --firn-recognize-activations --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @gelu_scaled_first
// CHECK-NEXT: firn.gelu %arg0 :
// CHECK-NEXT: return
func.func @gelu_scaled_first(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %half = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %root = firn.constant {value = dense<1.41421354> : tensor<f32>} : tensor<f32>
  %0 = firn.div %x, %root : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = firn.erf %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = firn.add %1, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = firn.mul %x, %half : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = firn.mul %3, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// CHECK-LABEL: @gelu_scaled_last_in_16_bits
// CHECK-NEXT: firn.gelu %arg0 :
// CHECK-NEXT: return
func.func @gelu_scaled_last_in_16_bits(%x: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %half = firn.constant {value = dense<0.5> : tensor<f16>} : tensor<f16>
  %one = firn.constant {value = dense<1.0> : tensor<f16>} : tensor<f16>
  %root = firn.constant {value = dense<0.70703125> : tensor<1xf16>} : tensor<1xf16>
  %0 = firn.mul %root, %x : (tensor<1xf16>, tensor<2x3xf16>) -> tensor<2x3xf16>
  %1 = firn.erf %0 : (tensor<2x3xf16>) -> tensor<2x3xf16>
  %2 = firn.add %one, %1 : (tensor<f16>, tensor<2x3xf16>) -> tensor<2x3xf16>
  %3 = firn.mul %2, %x : (tensor<2x3xf16>, tensor<2x3xf16>) -> tensor<2x3xf16>
  %4 = firn.mul %3, %half : (tensor<2x3xf16>, tensor<f16>) -> tensor<2x3xf16>
  return %4 : tensor<2x3xf16>
}

// CHECK-LABEL: @another_factor_is_no_gelu
// CHECK-NOT: firn.gelu
// CHECK: return
func.func @another_factor_is_no_gelu(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %half = firn.constant {value = dense<0.6> : tensor<f32>} : tensor<f32>
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %root = firn.constant {value = dense<1.41421354> : tensor<f32>} : tensor<f32>
  %0 = firn.div %x, %root : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = firn.erf %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = firn.add %1, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = firn.mul %x, %half : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = firn.mul %3, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// CHECK-LABEL: @another_value_is_no_gelu
// CHECK-NOT: firn.gelu
// CHECK: return
func.func @another_value_is_no_gelu(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %half = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %root = firn.constant {value = dense<1.41421354> : tensor<f32>} : tensor<f32>
  %0 = firn.div %y, %root : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = firn.erf %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = firn.add %1, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = firn.mul %x, %half : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = firn.mul %3, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// CHECK-LABEL: @gelu_by_tanh_with_a_power
// CHECK-NEXT: firn.gelu %arg0 {approximate = "tanh"}
// CHECK-NEXT: return
func.func @gelu_by_tanh_with_a_power(%x: tensor<2xf32>) -> tensor<2xf32> {
  %half = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %three = firn.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %c = firn.constant {value = dense<0.044715> : tensor<f32>} : tensor<f32>
  %s = firn.constant {value = dense<0.797884583> : tensor<f32>} : tensor<f32>
  %0 = firn.pow %x, %three : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = firn.mul %0, %c : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = firn.add %x, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = firn.mul %2, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = firn.tanh %3 : (tensor<2xf32>) -> tensor<2xf32>
  %5 = firn.add %4, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %6 = firn.mul %x, %half : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %7 = firn.mul %6, %5 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %7 : tensor<2xf32>
}

// CHECK-LABEL: @gelu_by_tanh_with_products
// CHECK-NEXT: firn.gelu %arg0 {approximate = "tanh"}
// CHECK-NEXT: return
func.func @gelu_by_tanh_with_products(%x: tensor<2xf32>) -> tensor<2xf32> {
  %half = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %c = firn.constant {value = dense<0.044715> : tensor<f32>} : tensor<f32>
  %s = firn.constant {value = dense<0.797884583> : tensor<f32>} : tensor<f32>
  %0 = firn.mul %x, %c : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = firn.mul %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = firn.add %one, %1 : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = firn.mul %x, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = firn.mul %3, %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = firn.tanh %4 : (tensor<2xf32>) -> tensor<2xf32>
  %6 = firn.add %5, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %7 = firn.mul %x, %6 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %8 = firn.mul %7, %half : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %8 : tensor<2xf32>
}

// CHECK-LABEL: @swish_and_its_gate
// CHECK-NEXT: %[[S:.+]] = firn.swish %arg0 {alpha = 1.702000e+00 : f32}
// CHECK-NEXT: firn.mul %[[S]], %arg1
func.func @swish_and_its_gate(%x: tensor<2xf32>, %g: tensor<2xf32>) -> tensor<2xf32> {
  %a = firn.constant {value = dense<1.702> : tensor<f32>} : tensor<f32>
  %0 = firn.mul %x, %a : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = firn.sigmoid %0 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = firn.mul %1, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = firn.mul %2, %g : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}

// CHECK-LABEL: @hard_swish_by_clip
// CHECK-NEXT: firn.hard_swish %arg0
// CHECK-NEXT: return
func.func @hard_swish_by_clip(%x: tensor<2xf32>) -> tensor<2xf32> {
  %three = firn.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %zero = firn.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %six = firn.constant {value = dense<6.0> : tensor<f32>} : tensor<f32>
  %0 = firn.add %x, %three : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = firn.clip %0, %zero, %six : (tensor<2xf32>, tensor<f32>, tensor<f32>) -> tensor<2xf32>
  %2 = firn.div %1, %six : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = firn.mul %x, %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}

// CHECK-LABEL: @hard_sigmoid_by_clip_gates_another_value
// CHECK-NEXT: %[[H:.+]] = firn.hard_sigmoid %arg0 {alpha = 0.166666672 : f32}
// CHECK-NEXT: firn.mul %arg1, %[[H]]
func.func @hard_sigmoid_by_clip_gates_another_value(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %three = firn.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %zero = firn.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %six = firn.constant {value = dense<6.0> : tensor<f32>} : tensor<f32>
  %0 = firn.add %x, %three : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = firn.clip %0, %zero, %six : (tensor<2xf32>, tensor<f32>, tensor<f32>) -> tensor<2xf32>
  %2 = firn.div %1, %six : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = firn.mul %y, %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}

// CHECK-LABEL: @mish_but_not_softplus
// CHECK: firn.log
// CHECK: firn.mish %arg0
func.func @mish_but_not_softplus(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.add %0, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = firn.log %1 : (tensor<2xf32>) -> tensor<2xf32>
  %3 = firn.tanh %2 : (tensor<2xf32>) -> tensor<2xf32>
  %4 = firn.mul %x, %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2, %4 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @softmax
// CHECK: firn.softmax %arg0 {axis = 1 : i64}
// CHECK-NEXT: return
func.func @softmax(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.reduce_max %x, %axes : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %1 = firn.sub %x, %0 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %2 = firn.exp %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = firn.reduce_sum %2, %axes : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %4 = firn.div %2, %3 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// CHECK-LABEL: @sum_over_another_axis_is_no_softmax
// CHECK-NOT: firn.softmax
// CHECK: return
func.func @sum_over_another_axis_is_no_softmax(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %first = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.reduce_max %x, %axes : (tensor<3x3xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %1 = firn.sub %x, %0 : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x3xf32>
  %2 = firn.exp %1 : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = firn.reduce_sum %2, %first : (tensor<3x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  %4 = firn.div %2, %3 : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
  return %4 : tensor<3x3xf32>
}
