package jsontext_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/internal/jsontext"
)

func TestObjectKeepsItsOrder(t *testing.T) {
	const text = `{"b":1,"a":"x \"y\"","é\u0000":[1.50,null],"b":{"z":0,"y":18446744073709551615}}`
	var o jsontext.Object
	require.NoError(t, json.Unmarshal([]byte(" "+text+"\n"), &o))
	require.Equal(t, []string{"b", "a", "é\x00", "b"}, o.Names)
	require.Equal(t, `x "y"`, o.Plain(1))
	require.Equal(t, "[1.50,null]", o.Plain(2))
	again, err := json.Marshal(o)
	require.NoError(t, err)
	require.Equal(t, text, string(again))
	require.NoError(t, o.Add("c", 2.5))
	require.Equal(t, "2.5", o.Plain(4))

	require.NoError(t, json.Unmarshal([]byte(`{}`), &o))
	require.Empty(t, o.Names)
	for _, bad := range []string{`[1]`, `null`, `"{}"`, `{"a":`, `{"a":1`, `{"a":1,}`, ``} {
		require.Error(t, o.UnmarshalJSON([]byte(bad)), bad)
	}
}
