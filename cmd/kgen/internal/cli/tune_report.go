package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/queue"
	"github.com/kgen-dev/kgen/tune/store"
)

// mostCauses is how many of the wrong configurations are printed, and of the other causes.
const mostCauses = 5

// printFailures names what is wrong, and why others came to nothing.
func (a *app) printFailures(wrong []tune.Wrong, causes []explore.Cause) {
	for _, w := range wrong[:min(mostCauses, len(wrong))] {
		fmt.Fprintf(a.out, "wrong     %s: %s\n", w.Config, oneLine(errors.New(w.Fault)))
	}
	if n := len(wrong) - mostCauses; n > 0 {
		fmt.Fprintf(a.out, "wrong     %d more: --json lists all\n", n)
	}
	causes = slices.DeleteFunc(slices.Clone(causes), func(c explore.Cause) bool {
		return c.Outcome.Wrong()
	})
	for _, c := range causes[:min(mostCauses, len(causes))] {
		fmt.Fprintf(a.out, "failed    %s, %d such as %s: %s\n", c.Outcome, c.Count, c.Config, oneLine(errors.New(c.Error)))
	}
	if n := len(causes) - mostCauses; n > 0 {
		fmt.Fprintf(a.out, "failed    for %d more causes: --json lists all\n", n)
	}
}

// failedText counts failures.
func failedText(failures map[store.Outcome]int) string {
	var parts []string
	for _, o := range store.Outcomes() {
		if n := failures[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", o, n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; failed: " + strings.Join(parts, ", ")
}

// printImportance says how much each parameter matters, if that is known.
func (a *app) printImportance(all []explore.Importance, together *float64, samples int) {
	if len(all) == 0 {
		return
	}
	var parts []string
	for _, i := range all {
		text := fmt.Sprintf("%s %.2f", i.Parameter, i.Share)
		if i.Unique != nil {
			text += fmt.Sprintf(" (%.2f)", *i.Unique)
		}
		parts = append(parts, text)
	}
	fmt.Fprintf(a.out, "matters   %s: what each explains alone of the variance of %d times", strings.Join(parts, ", "), samples)
	if together == nil {
		fmt.Fprintln(a.out, "; too few times to tell what all do together")
		return
	}
	fmt.Fprintf(a.out, ", in brackets what none of the others does\ntogether  %.2f by their sum; what was tried is no even sample, so shares overlap\n", *together)
}

// printSeconds says what the phases took.
func (a *app) printSeconds(by map[string]float64) {
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %.1f", phase, by[phase]))
	}
	if len(parts) > 0 {
		fmt.Fprintf(a.out, "seconds   %s, of all processes together\n", strings.Join(parts, ", "))
	}
}

// timeText is a time with its interval, if there is one.
func timeText(us float64, low, high *float64, decimals int) string {
	if low == nil {
		return fmt.Sprintf("%.*f us", decimals, us)
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f) us", decimals, us, decimals, *low, decimals, *high)
}

// printWorkers says who did how much, if it was done by workers.
func (a *app) printWorkers(all []queue.Standing) {
	for _, w := range all {
		lost := ""
		if w.State == queue.Lost {
			lost = ", then lost"
		}
		fmt.Fprintf(a.out, "worker    %s: %d compiled, %d run%s\n", visible(w.Worker), w.Compiled, w.Ran, lost)
	}
}
