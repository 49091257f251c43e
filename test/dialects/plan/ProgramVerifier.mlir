// RUN: firn-mlir-opt %s --split-input-file --verify-diagnostics
// One program per rule of plan.program that it breaks.

plan.program @numbers_have_gaps_c1 arena 0 weights 0 {
  // expected-error@+1 {{expected number 0, found 1}}
  plan.value 1 = constant [4]
}

// -----
plan.program @a_value_reads_above_it_c2 arena 0 weights 0 {
  // expected-error@+1 {{names value 0, which is not below it}}
  plan.value 0 = add [0, 0]
}

// -----
plan.program @a_buffer_names_no_value_c2 arena 0 weights 0 {
  // expected-error@+1 {{names value 7, but there are 0}}
  plan.buffer 0 = late f32 [7] at -1
}

// -----
plan.program @a_step_names_no_buffer_c2 arena 0 weights 0 {
  // expected-error@+1 {{names buffer 3, but there are 0}}
  plan.copy 0 reads [3] writes [3] dims [] as "copy" "" costs [-1, -1]
}

// -----
plan.program @a_value_names_no_dimension_c2 arena 0 weights 0 {
  // expected-error@+1 {{names dimension 1 of an input of rank 1}}
  plan.value 0 = input_dim [0, 1]
  plan.value 1 = constant [1]
  plan.buffer 0 = input f32 [1] at 0
  plan.input 0 = "x" f32 [1] symbols [""] buffer 0
}

// -----
plan.program @a_sum_with_a_symbol_is_late_c3 arena 0 weights 0 {
  plan.value 0 = symbol [] late
  // expected-error@+1 {{is made of a symbol, so it is late}}
  plan.value 1 = add [0, 0]
  // expected-error@+1 {{is late, but made of no symbol}}
  plan.value 2 = constant [1] late
}

// -----
plan.program @aliases_in_a_circle_c4 arena 0 weights 0 {
  // expected-error@+1 {{is an alias of itself}}
  plan.buffer 0 = alias f32 [] at 1
  // expected-error@+1 {{is an alias of itself}}
  plan.buffer 1 = alias f32 [] at 0
}

// -----
plan.program @a_port_has_another_dtype_c4 arena 0 weights 0 {
  plan.buffer 0 = output f32 [] at 0
  // expected-error@+1 {{expected a buffer of dtype i64, found f32}}
  plan.output 0 = "y" i64 [] symbols [] buffer 0
}

// -----
plan.program @a_port_has_the_buffer_of_another_c4 arena 0 weights 0 {
  plan.buffer 0 = weight f32 [] at 0
  // expected-error@+1 {{its buffer belongs to another}}
  plan.output 0 = "y" f32 [] symbols [] buffer 0
}

// -----
plan.program @two_live_buffers_share_bytes_c5 arena 192 weights 0 {
  plan.value 0 = constant [32]
  plan.buffer 0 = arena f32 [0] at 0 lives [0, 1]
  // expected-error@+1 {{shares bytes with buffer 0 while both live}}
  plan.buffer 1 = arena f32 [0] at 64 lives [1, 1]
  plan.copy 0 reads [0] writes [1] dims [] as "copy" "" costs [-1, -1]
  plan.copy 1 reads [0] writes [1] dims [] as "copy" "" costs [-1, -1]
}

// -----
plan.program @a_buffer_ends_outside_the_arena_c5 arena 64 weights 0 {
  plan.value 0 = constant [32]
  // expected-error@+1 {{expected bytes below 64, found [0, 128)}}
  plan.buffer 0 = arena f32 [0] at 0
}

// -----
plan.program @a_buffer_has_no_offset_c5 arena 64 weights 0 {
  // expected-error@+1 {{has no offset in a placed arena}}
  plan.buffer 0 = arena f32 [] at -1
}

// -----
plan.program @a_buffer_is_not_aligned_c5 arena 64 weights 0 {
  // expected-error@+1 {{expected a 64-byte aligned offset, found 4}}
  plan.buffer 0 = arena f32 [] at 4
}

// -----
plan.program @a_weight_lies_outside_c6 arena 0 weights 64 {
  // expected-error@+1 {{expected a 64-byte aligned offset up to 64, found 128}}
  plan.buffer 0 = weight f32 [] at 128
}

// -----
plan.program @a_loop_ends_outside_its_branch_c7 arena 64 weights 0 {
  plan.buffer 0 = arena bool [] at 0
  plan.if 0 else 2 end 2 reads [0] writes [] dims [] as "if" "" costs [-1, -1]
  // expected-error@+1 {{expected steps between 2 and 2, found 3 and 3}}
  plan.loop 1 end 3 reads [-1, 0] writes [-1] dims [] as "loop" "" costs [-1, -1]
  plan.fail 2 reads [] writes [] dims [] as "fail" "" costs [-1, -1]
}

// -----
plan.program @a_bind_sets_a_constant_c8 arena 0 weights 0 {
  plan.value 0 = constant [1]
  // expected-error@+1 {{binds value 0, which is no symbol}}
  plan.bind 0 reads [] writes [] dims [0, 0] as "bind" "" costs [-1, -1]
}

// -----
plan.program @an_append_outside_of_loops_c8 arena 0 weights 0 {
  plan.value 0 = symbol [] late
  plan.buffer 0 = late f32 [] at -1
  plan.buffer 1 = late f32 [0] at -1
  // expected-error@+1 {{is in no loop}}
  plan.append 0 reads [0] writes [1] dims [0] as "append" "" costs [-1, -1]
}

// -----
plan.program @unknown_words arena 0 weights 0 {
  // expected-error@+1 {{unknown kind 'twice'}}
  plan.value 0 = twice [1]
  // expected-error@+2 {{unknown kind 'heap'}}
  // expected-error@+1 {{unknown dtype 'f7'}}
  plan.buffer 0 = heap f7 [] at 0
}
