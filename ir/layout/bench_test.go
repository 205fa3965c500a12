package layout

import "testing"

// The tiles of a head-dimension-128 attention kernel, which must compile in
// milliseconds.
func BenchmarkConvertRegisters(b *testing.B) {
	acc := mustLayout(b)(MMAAccumulator([]int{128, 128}, 4, 1))
	a := mustLayout(b)(MMAOperandA([]int{128, 128}, 16, 4, 1))
	for b.Loop() {
		Convert(acc, a)
	}
}

func BenchmarkConvertShuffles(b *testing.B) {
	acc := mustLayout(b)(MMAAccumulator([]int{128, 128}, 4, 1))
	a := mustLayout(b)(MMAOperandA([]int{128, 128}, 8, 4, 1))
	for b.Loop() {
		Convert(acc, a)
	}
}

func BenchmarkConvertMemory(b *testing.B) {
	acc := mustLayout(b)(MMAAccumulator([]int{128, 128}, 4, 1))
	rows := mustLayout(b)(Blocked([]int{128, 128}, []int{1, 0}, 8, 4))
	for b.Loop() {
		Convert(acc, rows)
	}
}

func BenchmarkReduce(b *testing.B) {
	acc := mustLayout(b)(MMAAccumulator([]int{128, 128}, 4, 1))
	for b.Loop() {
		acc.Reduce(1)
	}
}

func BenchmarkLdmatrix(b *testing.B) {
	s := mustShared(b)(Swizzled([]int{128, 64}, []int{1, 0}, 2, 128))
	l := mustLayout(b)(MMAOperandB([]int{128, 64}, 16, 4, 1))
	for b.Loop() {
		if _, ok := s.Ldmatrix(l); !ok {
			b.Fatal("no ldmatrix")
		}
	}
}

func BenchmarkBasis(b *testing.B) {
	s := mustShared(b)(Swizzled([]int{128, 128}, []int{1, 0}, 2, 128))
	l := mustLayout(b)(MMAAccumulator([]int{128, 128}, 4, 1))
	for b.Loop() {
		if _, ok := s.Basis(l); !ok {
			b.Fatal("no basis")
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	l := mustLayout(b)(MMAOperandB([]int{64, 128}, 16, 4, 1))
	w := mustLayout(b)(Blocked([]int{64, 128}, []int{1, 0}, 8, 4))
	for b.Loop() {
		if _, err := Choose([]int{64, 128}, []int{1, 0}, 2, Use{Layout: l, Matrix: true}, Use{Layout: w}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAccumulator(b *testing.B) {
	for b.Loop() {
		if _, err := MMAAccumulator([]int{128, 128}, 4, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	text := mustLayout(b)(MMAAccumulator([]int{128, 176}, 4, 1)).String()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
