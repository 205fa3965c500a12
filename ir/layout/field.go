package layout

// Field is a run of an index's bits that contributes their value times Scale:
//
//	(index >> Shift & (1<<Bits - 1)) * Scale
type Field struct {
	Shift, Bits, Scale int
}

// Fields writes a map given by what each bit of an index contributes (a column of
// ThreadBases, or one part of Basis.Thread) as few fields. With xor the map is the
// XOR of its fields, otherwise their sum.
func Fields(columns []int, xor bool) []Field {
	var fields []Field
	for i := 0; i < len(columns); {
		if columns[i] == 0 {
			i++
			continue
		}
		f := Field{Shift: i, Bits: 1, Scale: columns[i]}
		used := columns[i]
		for i++; i < len(columns) && columns[i] == f.Scale<<f.Bits; i++ {
			if xor && used&columns[i] != 0 {
				break // a product would carry
			}
			used |= columns[i]
			f.Bits++
		}
		fields = append(fields, f)
	}
	return fields
}
