package bench

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// npyFile makes a .npy file of a version from its parts.
func npyFile(version byte, header string, data []byte) []byte {
	b := []byte(npyMagic + string(version) + "\x00")
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(append(b, header...), data...)
}

func TestDecodeNPY(t *testing.T) {
	data := []byte("abcdefghijklmnopqrstuvwx")
	for _, tc := range []struct {
		version byte
		header  string
		dtype   string
		shape   []int64
	}{
		{1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", "f4", []int64{2, 3}},
		{2, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }   \n", "f4", []int64{6}},
		{3, `{"shape":(2,3,1,),"descr":"<i4","fortran_order":False}`, "i4", []int64{2, 3, 1}},
		{1, "{'descr': '|u1', 'fortran_order': True, 'shape': (24L,)}", "u1", []int64{24}},
		{1, "{'descr': '|b1', 'fortran_order': False, 'shape': (24,)}", "u1", []int64{24}},
	} {
		a, err := DecodeNPY(npyFile(tc.version, tc.header, data))
		require.NoError(t, err, tc.header)
		require.Equal(t, &Array{tc.dtype, tc.shape, data}, a)
	}
	a, err := DecodeNPY(npyFile(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", data[:8]))
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Count())
}

func TestDecodeNPYRefuses(t *testing.T) {
	dict := func(descr, order, shape string) []byte {
		return npyFile(1, "{'descr': '"+descr+"', 'fortran_order': "+order+", 'shape': "+shape+"}", make([]byte, 24))
	}
	for want, file := range map[string][]byte{
		"no .npy file":                       []byte("hello, world"),
		"version 4: want 1, 2 or 3":          npyFile(4, "{}", nil),
		"ends in its header":                 npyFile(1, strings.Repeat(" ", 99), nil)[:50],
		"want little-endian":                 dict(">f4", "False", "(6,)"),
		`element type "<c8"`:                 dict("<c8", "False", "(3,)"),
		`element type "|O"`:                  dict("|O", "False", "(3,)"),
		"Fortran order: want C order":        dict("<f4", "True", "(2, 3)"),
		"24 bytes of data: shape [7] of <f4": dict("<f4", "False", "(7,)"),
		"at most 4294967296 bytes":           dict("<f4", "False", "(4294967296, 4294967296, 4294967296)"),
		`extent "-1,)}"`:                     dict("<f4", "False", "(-1,)"),
		"more than 32 dimensions":            dict("<f4", "False", "("+strings.Repeat("1,", 40)+")"),
		"no shape":                           npyFile(1, "{'descr': '<f4', 'fortran_order': False}", nil),
		`key "shape" twice`:                  npyFile(1, "{'shape': (1,), 'shape': (1,)", nil),
		`key "x": want descr`:                npyFile(1, "{'x': '<f4'}", nil),
		"text after the header's end":        dict("<f4", "False", "(6,)}, {'x': 1"),
		"header of 4294967295 bytes: want":   []byte(npyMagic + "\x02\x00\xff\xff\xff\xff    "),
		`found "None}": want "False"`:        npyFile(1, "{'fortran_order': None}", nil),
	} {
		_, err := DecodeNPY(file)
		require.ErrorContains(t, err, want)
	}
}

func TestNPYFileRoundTrip(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.npy")
	for _, a := range []*Array{
		{"f4", []int64{2, 3}, []byte("abcdefghijklmnopqrstuvwx")},
		{"u1", []int64{5}, []byte("abcde")},
		{"f8", []int64{}, []byte("12345678")},
		{"i2", []int64{0, 4}, []byte{}},
	} {
		require.NoError(t, WriteNPYFile(name, a))
		got, err := ReadNPYFile(name)
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
	_, err := ReadNPYFile(filepath.Join(t.TempDir(), "absent.npy"))
	require.ErrorContains(t, err, "absent.npy")
}

func FuzzDecodeNPY(f *testing.F) {
	f.Add(npyFile(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", make([]byte, 24)))
	f.Add(npyFile(3, `{"shape":(2,),"descr":"|u1","fortran_order":True}`, make([]byte, 2)))
	f.Fuzz(func(t *testing.T, file []byte) {
		a, err := DecodeNPY(file)
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, EncodeNPY(&b, a))
		again, err := DecodeNPY(b.Bytes())
		require.NoError(t, err)
		require.Equal(t, a.DType, again.DType)
		require.Equal(t, a.Shape, again.Shape)
		require.True(t, bytes.Equal(a.Data, again.Data))
	})
}
