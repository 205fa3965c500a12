// Package eval runs programs of package ir straight from the definitions of their
// operations: the oracle of everything below it.
//
// Arithmetic is exact to the element type: f32 operations round to f32, those of
// narrower types to the narrower type, integers wrap. Functions such as exp2 are
// correctly rounded as far as Go's math package is. A dot adds exact products to
// its accumulator in the order of k, rounding each sum to the accumulator's type.
// A reduce combines neighbours, then neighbours among the results and so on, rounding
// each step to the element type; the odd one out waits for the next round.
//
// Tiles of a kernel run one after another in index order. Workspace starts
// poisoned. Asynchronous copies land as late as the program allows: at the wait
// that covers them. Reading a buffer before that, or overwriting one that was not
// released, is an error.
package eval
