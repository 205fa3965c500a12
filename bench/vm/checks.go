package vm

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/bench"
)

// Checks says what a launch looks for. The zero value is the default: every
// class of fault, but not what is only suspicious. A check that is off costs
// nothing.
type Checks struct {
	set  bool
	bits checkBits
}

type checkBits uint32

// The two checks of what is only suspicious, after the classes of faults.
const (
	StrictProxy = "strict-proxy" // order that hardware keeps and PTX does not promise
	SameValue   = "same-value"   // unordered writes of the same value
)

var checkNames = func() []string {
	var names []string
	for _, c := range bench.FaultClasses() {
		names = append(names, string(c))
	}
	return append(names, StrictProxy, SameValue)
}()

func checkBit(name string) (checkBits, error) {
	for i, n := range checkNames {
		if n == name {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("check %q: want one of default, all, none, %s", name, strings.Join(checkNames, ", "))
}

func mustBit(name string) checkBits {
	b, err := checkBit(name)
	if err != nil {
		panic(err)
	}
	return b
}

var (
	allChecks     = checkBits(1)<<len(checkNames) - 1
	defaultChecks = allChecks &^ (mustBit(StrictProxy) | mustBit(SameValue))

	checkUndefined = mustBit(string(bench.UninitialisedGlobalRead)) | mustBit(string(bench.UninitialisedSharedRead)) | mustBit(string(bench.UninitialisedRegister))
	checkSameValue = mustBit(SameValue)
	checkRaces     = mustBit(string(bench.SharedRace)) | mustBit(string(bench.GlobalRace)) | mustBit(string(bench.AsyncCopyRace)) | mustBit(string(bench.MissingProxyFence))
)

// NoChecks looks for nothing. Accesses out of bounds still do no harm.
func NoChecks() Checks { return Checks{set: true} }

// ParseChecks reads a list such as "" (the default), "default", "none", "shared-race,deadlock"
// (only those) or "+strict-proxy,-global-race" (the default, changed).
func ParseChecks(list string) (Checks, error) {
	if list == "" {
		return Checks{}, nil
	}
	c := Checks{set: true}
	for i, word := range strings.Split(list, ",") {
		word = strings.TrimSpace(word)
		sign, name := byte(0), word
		if word != "" && (word[0] == '+' || word[0] == '-') {
			sign, name = word[0], word[1:]
		}
		if i == 0 && sign != 0 {
			c.bits = defaultChecks
		}
		var b checkBits
		switch name {
		case "default":
			b = defaultChecks
		case "all":
			b = allChecks
		case "none":
		default:
			var err error
			if b, err = checkBit(name); err != nil {
				return Checks{}, err
			}
		}
		if sign == '-' {
			c.bits &^= b
		} else {
			c.bits |= b
		}
	}
	return c, nil
}

func (c Checks) effective() checkBits {
	if !c.set {
		return defaultChecks
	}
	return c.bits
}

// has says whether any of these checks is on.
func (b checkBits) has(any checkBits) bool { return b&any != 0 }
