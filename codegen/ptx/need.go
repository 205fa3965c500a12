package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// need is what a form or a modifier needs: any of some pairs of a PTX version
// and targets. No pairs is no need.
type need []needOne

type needOne struct {
	version Version
	targets []targetNeed // any of them; none is any target
	before  bool         // removed: refused at this version and target, and after
}

// targetNeed is "sm_90 and all after" (no suffix), "sm_90a alone" ('a'), or
// "the family of sm_100, from it on, as sm_100f or sm_103a" ('f').
type targetNeed struct {
	sm     int
	suffix byte
}

// namedNeeds are the needs that many forms share.
var namedNeeds = map[string]string{
	// Tensor memory and its instructions.
	"tcgen05": "8.6/100a,110a&8.8/100f,110f",
	// Narrow formats of the same generation, datacentre and consumer parts.
	"blackwell":  "8.6/100a,110a,120a&8.8/100f,110f,120f",
	"i8":         "8.6/100a,110a",
	"mxf4":       "8.6/100a,103a,110a&9.4/107a",
	"nvf4":       "8.7/100a,103a,110a&9.4/107a",
	"scale":      "8.6/100a,103a,110a",
	"scaled":     "8.6/100a&8.8/100f",
	"block":      "8.8/100f,110f",
	"rs":         "8.7/100a,103a&9.4/107a",
	"sm90a":      "8.0/90a",
	"setmaxnreg": "8.0/90a&8.6/100a,110a,120a&8.8/100f,110f,120f",
	"tensormap":  "8.3/90a&8.6/100a,110a,120a&8.8/100f,110f,120f",
	"narrow":     "9.1/100f,110f,120f",
	"widened":    "9.2/100f,110f,120f&9.4/107f",
	"s2f6":       "9.1/100a,103a,110a,120a,121a&9.4/107a",
	"mma120":     "8.7/120a&8.8/120f",
	"mmaf16":     "8.7/100a,110a,120a&8.8/100f,110f,120f",
	"bytes":      "9.2/120f&9.4/107f",
	// PTX 9.3 and 9.4.
	"rubin":     "9.4/107f",
	"strong":    "9.3/90a,100f,110f",
	"pullred":   "9.3/100f,110f,120f",
	"ldred":     "8.6/110a&8.8/110f,103f",
	"reduxf32":  "8.6/100a&8.8/100f",
	"gather4":   "8.6/100a&8.8/100f",
	"multimem8": "8.6/100a,110a,120a,121a&8.8/100f,110f",
}

// parseNeed reads "8.6/100a,110a&8.8/100f", "7.8/90", "8.0", "/80", "<6.4/70"
// or a named need.
func parseNeed(text string) need {
	if text == "" {
		return nil
	}
	if named, ok := namedNeeds[text]; ok {
		text = named
	}
	var n need
	for one := range strings.SplitSeq(text, "&") {
		one, before := strings.CutPrefix(one, "<")
		version, targets, _ := strings.Cut(one, "/")
		o := needOne{before: before}
		if version != "" {
			major, minor, ok := strings.Cut(version, ".")
			o.version = Version{mustAtoi(major), mustAtoi(minor)}
			if !ok {
				panic("ptx: table: need " + text)
			}
		}
		for t := range strings.SplitSeq(targets, ",") {
			if t != "" {
				o.targets = append(o.targets, parseTargetNeed(t))
			}
		}
		n = append(n, o)
	}
	return n
}

func mustAtoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("ptx: table: number " + s)
	}
	return n
}

func parseTargetNeed(s string) targetNeed {
	last := s[len(s)-1]
	if last == 'a' || last == 'f' {
		return targetNeed{mustAtoi(s[:len(s)-1]), last}
	}
	return targetNeed{mustAtoi(s), 0}
}

// Target is a module's `sm_` target: 90 and 'a' for sm_90a.
type Target struct {
	SM     int
	Suffix byte // 'a', 'f' or 0
}

func (t Target) String() string {
	s := "sm_" + strconv.Itoa(t.SM)
	if t.Suffix != 0 {
		s += string(t.Suffix)
	}
	return s
}

// ParseTarget reads "sm_90a".
func ParseTarget(s string) (Target, error) {
	digits, ok := strings.CutPrefix(s, "sm_")
	var t Target
	if ok && digits != "" {
		if last := digits[len(digits)-1]; last == 'a' || last == 'f' {
			t.Suffix, digits = last, digits[:len(digits)-1]
		}
		n, err := strconv.Atoi(digits)
		if t.SM = n; err == nil && n >= 10 && n < 1000 && digits[0] != '0' && digits[0] != '+' {
			return t, nil
		}
	}
	return Target{}, fmt.Errorf("target %q: want sm_ and a number such as sm_90a", clip(s))
}

// family is the generation that 'f' features are shared in: sm_100 and sm_103
// are one, sm_120 and sm_121 another.
func family(sm int) int { return sm / 10 }

// current undoes a renaming: sm_101 is sm_110 since PTX 9.0.
func current(sm int) int {
	if sm == 101 {
		return 110
	}
	return sm
}

func (n targetNeed) has(t Target) bool {
	sm := current(t.SM)
	switch n.suffix {
	case 'a':
		return t.Suffix == 'a' && sm == n.sm
	case 'f':
		return t.Suffix != 0 && family(sm) == family(n.sm) && sm >= n.sm
	}
	return sm >= n.sm
}

func (o *needOne) met(v Version, t Target) bool {
	target := len(o.targets) == 0
	for _, n := range o.targets {
		target = target || n.has(t)
	}
	met := target && !v.Less(o.version)
	return met != o.before
}

func (n need) met(v Version, t Target) bool {
	for i := range n {
		if n[i].met(v, t) {
			return true
		}
	}
	return len(n) == 0
}

// String says what is needed, for messages.
func (n need) String() string {
	var all []string
	for i := range n {
		o := &n[i]
		var parts []string
		if o.version != (Version{}) {
			parts = append(parts, "PTX "+o.version.String())
		}
		var targets []string
		for _, t := range o.targets {
			switch t.suffix {
			case 0:
				targets = append(targets, fmt.Sprintf("sm_%d or newer", t.sm))
			default:
				targets = append(targets, fmt.Sprintf("sm_%d%c", t.sm, t.suffix))
			}
		}
		if targets != nil {
			parts = append(parts, strings.Join(targets, ", "))
		}
		s := strings.Join(parts, " and ")
		if o.before {
			s = "something older than " + s
		}
		all = append(all, s)
	}
	return strings.Join(all, "; or ")
}
