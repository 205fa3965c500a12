// Package fixedseed makes property tests draw the same values in every run.
// Tests import it for that effect; RAPID_SEED=0 or -rapid.seed=0 draws new ones.
package fixedseed

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // has the flag
)

func init() {
	if _, asked := os.LookupEnv("RAPID_SEED"); asked {
		return
	}
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}
