package ptx

// Spec is an instruction's entry in the table.
type Spec struct {
	Name string
	Pipe Pipe
}
