package ir_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain fixes the seed of random tests; -rapid.seed=0 draws new ones.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
