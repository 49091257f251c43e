// RUN: firn-mlir-opt %s --convert-kernel-to-llvm | FileCheck %s

// Each buffer has a scope of its own, and accesses to it are in no other.
// CHECK-DAG: #[[A:.+]] = #llvm.alias_scope<id = {{.*}}, description = "buffer0">
// CHECK-DAG: #[[OUT:.+]] = #llvm.alias_scope<id = {{.*}}, description = "buffer1">
// CHECK-DAG: #[[SCRATCH:.+]] = #llvm.alias_scope<id = {{.*}}, description = "buffer2">

// CHECK-LABEL: llvm.func @buffers_and_dims_come_from_the_arguments(
// CHECK-SAME: %[[ARGS:.+]]: !llvm.ptr {llvm.noalias, llvm.readonly}, %[[WORKER:.+]]: i32, %[[WORKERS:.+]]: i32)
// CHECK: %[[BUFFERS:.+]] = llvm.load
// CHECK: %[[FIRST:.+]] = llvm.getelementptr inbounds %[[BUFFERS]][0]
// CHECK: llvm.load %[[FIRST]]
// CHECK: %[[FIELD:.+]] = llvm.getelementptr inbounds %[[ARGS]][8]
// CHECK: llvm.load %[[FIELD]]
// CHECK: llvm.zext %[[WORKER]]
// CHECK: llvm.load %{{.*}} {alias_scopes = [#[[A]]], alignment = 4 : i64, noalias_scopes = [#[[OUT]], #[[SCRATCH]]]} : !llvm.ptr -> vector<8xf32>
// CHECK: llvm.store %{{.*}} {alias_scopes = [#[[OUT]]], alignment = 4 : i64, noalias_scopes = [#[[A]], #[[SCRATCH]]]} : vector<8xf32>
// CHECK: llvm.return
kernel.func @buffers_and_dims_come_from_the_arguments attributes {buffer_count = 2 : i64, dim_count = 1 : i64, scratch_bytes = 0 : i64, parallel = true} {
^bb0(%a: !kernel.buffer, %out: !kernel.buffer, %n: index, %scratch: !kernel.buffer, %worker: index, %workers: index):
  %x = kernel.load %a[%n] : vector<8xf32>
  kernel.store %x, %out[%worker] : vector<8xf32>
  kernel.return
}

// CHECK-LABEL: llvm.func @bool_elements_are_bytes
// CHECK: %[[BYTES:.+]] = llvm.load {{.*}} -> vector<16xi8>
// CHECK: %[[BITS:.+]] = llvm.icmp "ne" %[[BYTES]]
// CHECK: %[[STORED:.+]] = llvm.zext %[[BITS]] : vector<16xi1> to vector<16xi8>
// CHECK: llvm.store %[[STORED]]
kernel.func @bool_elements_are_bytes attributes {buffer_count = 2 : i64, dim_count = 0 : i64, scratch_bytes = 0 : i64, parallel = false} {
^bb0(%a: !kernel.buffer, %out: !kernel.buffer, %scratch: !kernel.buffer, %worker: index, %workers: index):
  %x = kernel.load %a[%worker] : vector<16xi1>
  kernel.store %x, %out[%worker] : vector<16xi1>
  kernel.return
}

// CHECK-LABEL: llvm.func @a_count_masks_lanes
// CHECK: %[[MASK:.+]] = llvm.icmp "slt"
// CHECK: llvm.intr.masked.load %{{.*}}, %[[MASK]]
// CHECK: llvm.intr.masked.store
kernel.func @a_count_masks_lanes attributes {buffer_count = 2 : i64, dim_count = 0 : i64, scratch_bytes = 0 : i64, parallel = false} {
^bb0(%a: !kernel.buffer, %out: !kernel.buffer, %scratch: !kernel.buffer, %worker: index, %workers: index):
  %x = kernel.load %a[%worker] count %workers : vector<16xf32>
  kernel.store %x, %out[%worker] count %workers : vector<16xf32>
  kernel.return
}

// CHECK-LABEL: llvm.func @a_fault_is_stored_under_its_condition
// CHECK: llvm.cond_br
// CHECK: %[[STATUS:.+]] = llvm.load
// CHECK: llvm.store %{{.*}}, %[[STATUS]] {alignment = 4 : i64} : i32
kernel.func @a_fault_is_stored_under_its_condition attributes {buffer_count = 0 : i64, dim_count = 0 : i64, scratch_bytes = 0 : i64, parallel = false} {
^bb0(%scratch: !kernel.buffer, %worker: index, %workers: index):
  %bad = arith.cmpi ugt, %worker, %workers : index
  kernel.fault %bad, 1
  kernel.return
}

// CHECK-LABEL: llvm.func @a_barrier_calls_the_pool
// CHECK-SAME: %[[ARGS2:.+]]: !llvm.ptr {llvm.noalias, llvm.readonly}, %[[W:.+]]: i32, %[[WS:.+]]: i32)
// CHECK: llvm.call %{{.*}}(%{{.*}}, %[[W]], %[[WS]]) : !llvm.ptr, (!llvm.ptr, i32, i32) -> ()
kernel.func @a_barrier_calls_the_pool attributes {buffer_count = 0 : i64, dim_count = 0 : i64, scratch_bytes = 0 : i64, parallel = true} {
^bb0(%scratch: !kernel.buffer, %worker: index, %workers: index):
  kernel.barrier
  kernel.return
}

// CHECK-LABEL: llvm.func @loops_become_branches
// CHECK: llvm.br
// CHECK: llvm.cond_br
// CHECK-NOT: scf.for
kernel.func @loops_become_branches attributes {buffer_count = 1 : i64, dim_count = 1 : i64, scratch_bytes = 0 : i64, parallel = false} {
^bb0(%out: !kernel.buffer, %n: index, %scratch: !kernel.buffer, %worker: index, %workers: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    kernel.store %zero, %out[%i] : f32
  }
  kernel.return
}

// CHECK-LABEL: llvm.func @functions_of_f64_without_an_intrinsic_call_libm
// CHECK: llvm.call @tanh(%{{.*}}) : (f64) -> f64
kernel.func @functions_of_f64_without_an_intrinsic_call_libm attributes {buffer_count = 1 : i64, dim_count = 0 : i64, scratch_bytes = 0 : i64, parallel = false} {
^bb0(%out: !kernel.buffer, %scratch: !kernel.buffer, %worker: index, %workers: index):
  %x = kernel.load %out[%worker] : f64
  %y = math.tanh %x : f64
  kernel.store %y, %out[%worker] : f64
  kernel.return
}
