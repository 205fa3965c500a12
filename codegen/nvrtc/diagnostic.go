package nvrtc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Severity of a diagnostic.
type Severity string

// The severities that NVRTC and ptxas print.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Diagnostic is one message of a compiler's log.
type Diagnostic struct {
	File     string // as #line or the source's name has it; "" when none is given
	Line     int    // from 1; 0 when none is given
	Severity Severity
	Message  string
}

func (d Diagnostic) String() string {
	switch {
	case d.File != "" && d.Line > 0:
		return fmt.Sprintf("%s:%d: %s: %s", d.File, d.Line, d.Severity, d.Message)
	case d.File != "":
		return fmt.Sprintf("%s: %s: %s", d.File, d.Severity, d.Message)
	}
	return fmt.Sprintf("%s: %s", d.Severity, d.Message)
}

var (
	// gemm.cu(12): error: identifier "x" is undefined
	frontEnd = regexp.MustCompile(`^(.*)\((\d+)\): (?:catastrophic )?(error|warning|remark|note)(?: #[0-9-]+-D)?: (.*)$`)
	// ptxas kernel.ptx, line 25; error   : Unknown symbol 'x'
	assembler = regexp.MustCompile(`^ptxas (.*), line (\d+); (error|warning|fatal|info)\s*: (.*)$`)
	// ptxas info    : (C7510) Potential Performance Loss: ...
	// nvrtc: error: invalid value for --gpu-architecture (-arch)
	placeless = regexp.MustCompile(`^(?:ptxas|nvrtc)[^:]*?:?\s+(error|warning|fatal|info)\s*: (.*)$`)
)

// timing is the one line of a log that differs from run to run.
var timing = regexp.MustCompile(`(?m)^ptxas info +: Compile time = .*\n?`)

// cleanLog makes the log of the same input the same text.
func cleanLog(log string) string {
	return strings.TrimSpace(timing.ReplaceAllString(strings.TrimRight(log, "\x00"), ""))
}

// aborted follows the errors that matter.
const aborted = "Ptx assembly aborted due to errors"

// serialised is how ptxas says that it runs wgmma instructions one after the other, with
// a wait behind each.
const serialised = "wgmma.mma_async instructions are serialized"

// Serialised returns the message in which ptxas says that it could not keep wgmma
// instructions asynchronous; "" if there is none.
func Serialised(log string) string {
	for _, d := range Diagnose(log) {
		if strings.Contains(d.Message, serialised) {
			return d.Message
		}
	}
	return ""
}

// Diagnose parses the log of NVRTC or ptxas. Lines that are no diagnostic,
// such as the source excerpts, are left out.
func Diagnose(log string) []Diagnostic {
	var ds []Diagnostic
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		m := frontEnd.FindStringSubmatch(line)
		if m == nil {
			m = assembler.FindStringSubmatch(line)
		}
		if m == nil {
			if p := placeless.FindStringSubmatch(line); p != nil {
				m = []string{"", "", "0", p[1], p[2]}
			}
		}
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil || m[4] == aborted {
			continue
		}
		ds = append(ds, Diagnostic{File: m[1], Line: n, Severity: severity(m[3]), Message: strings.TrimSpace(m[4])})
	}
	return ds
}

func severity(word string) Severity {
	switch word {
	case "error", "fatal":
		return Error
	case "warning":
		return Warning
	}
	return Info
}
