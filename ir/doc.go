// Package ir is the tile IR: single-block programs over tiles in SSA form with
// structured control flow, and the staged IR, the same SSA with buffers and time.
//
// A [Program] is a list of kernels, workspace buffers with size expressions and
// ordered launch steps. A [Kernel] declares a tile space; its body runs once for
// every point of that space. Values are scalars, tiles of static shape, views of
// global memory and (staged) rings of shared buffers. One table, in opcode.go,
// says of every operation what its operands are, how they print, which types it
// takes and gives and what it does to memory; the builder, printer, parser,
// verifier and the interpreter in ir/eval read that table.
//
// The textual form (a .tile file) parses back to the same program.
package ir
