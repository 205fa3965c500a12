package simt

// Pass is a clean-up of a kernel in place.
type Pass struct {
	Name string
	Why  string
	Run  func(*Kernel)
}

// Passes is the clean-up in its order.
var Passes = []Pass{
	{"simplify", "fold constants and give equal computations one value, now that loops and branches are known", Simplify},
	{"dead", "remove what nobody uses: the passes that follow weigh uses", RemoveDead},
	{"address", "split addresses in loops into what stays and what moves, and bump one pointer a round for what moves", ReduceAddresses},
	{"hoist", "move what a loop computes alike in every round before it", Hoist},
	{"simplify", "merge what the passes before made equal", Simplify},
	{"dead", "remove what nobody uses, carried values of loops included", RemoveDead},
	{"sink", "load tiles for which there is no room as they are used; behind what removes values that take some", Sink},
}

// Clean runs all passes.
func Clean(k *Kernel) {
	for _, p := range Passes {
		p.Run(k)
	}
}
