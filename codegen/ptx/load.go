package ptx

// Load parses a module, binds its names and checks its instructions.
func Load(file string, src []byte) (*Module, error) {
	m, err := Parse(file, src)
	if err != nil {
		return nil, err
	}
	if err := Resolve(m); err != nil {
		return nil, err
	}
	if err := Check(m); err != nil {
		return nil, err
	}
	return m, nil
}
