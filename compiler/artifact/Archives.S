/* The archives of reference kernels, one per target, as bytes of the compiler. */
  .section .rodata
  .global firn_archive_x86_64_begin, firn_archive_x86_64_end, firn_archive_aarch64_begin, firn_archive_aarch64_end
  .balign 16
firn_archive_x86_64_begin:
  .incbin FIRN_ARCHIVE_X86_64
firn_archive_x86_64_end:
  .balign 16
firn_archive_aarch64_begin:
  .incbin FIRN_ARCHIVE_AARCH64
firn_archive_aarch64_end:
  .section .note.GNU-stack,"",@progbits
