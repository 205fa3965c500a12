package ptx

// versions are the versions of PTX there were, oldest first: PTX ISA, release
// notes.
var versions = []Version{
	{1, 0},
	{1, 1},
	{1, 2},
	{1, 3},
	{1, 4},
	{1, 5},
	{2, 0},
	{2, 1},
	{2, 2},
	{2, 3},
	{3, 0},
	{3, 1},
	{3, 2},
	{4, 0},
	{4, 1},
	{4, 2},
	{4, 3},
	{5, 0},
	{5, 1},
	{6, 0},
	{6, 1},
	{6, 2},
	{6, 3},
	{6, 4},
	{6, 5},
	{7, 0},
	{7, 1},
	{7, 2},
	{7, 3},
	{7, 4},
	{7, 5},
	{7, 6},
	{7, 7},
	{7, 8},
	{8, 0},
	{8, 1},
	{8, 2},
	{8, 3},
	{8, 4},
	{8, 5},
	{8, 6},
	{8, 7},
	{8, 8},
	{9, 0},
	{9, 1},
	{9, 2},
	{9, 3},
	{9, 4},
}

// LeastVersion is the lowest PTX version that has a module's target and all
// of its instructions. Resolve must have been through the module; the version
// it says itself is not looked at. The error is that of Check.
func LeastVersion(m *Module) (Version, error) {
	said := m.Version
	defer func() { m.Version = said }()
	var err error
	for _, v := range versions {
		if least, ok := leastVersion(m.Target()); !ok || v.Less(least) {
			continue
		}
		m.Version = v
		if err = Check(m); err == nil {
			return v, nil
		}
	}
	if err == nil {
		m.Version = versions[len(versions)-1]
		err = Check(m)
	}
	return Version{}, err
}
