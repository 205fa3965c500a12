// Package ptx reads, checks and writes PTX, the assembly language of NVIDIA
// GPUs (PTX ISA 9.x).
//
// Parse turns text into a syntax tree, Print turns the tree back into text
// that parses to the same tree. Resolve binds the names in a tree to what they
// stand for and numbers registers and instructions densely. Check compares
// every instruction with the one table of instructions (table*.go) and refuses
// what PTX does not have, or does not have for the module's version and target.
// Load does all three.
package ptx
