package cli

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/tune/queue"
)

// tokenEnv holds the token of a queue where no flag does.
const tokenEnv = "KGEN_TOKEN"

// accessFlags say how a tuner and its workers prove who they are.
type accessFlags struct {
	token, tokenFile string
	cert, key, ca    string
}

func (f *accessFlags) declare(c *cobra.Command) {
	filledFlag(c, &f.tokenFile, "token-file", "", "`FILE` with the token that the tuner and its workers share (default $"+tokenEnv+")")
	filledFlag(c, &f.token, "token", "", "the `TOKEN` itself, which the list of processes shows then")
	filledFlag(c, &f.cert, "tls-cert", "", "`FILE` of a certificate to show, PEM")
	filledFlag(c, &f.key, "tls-key", "", "`FILE` of its key, PEM")
	filledFlag(c, &f.ca, "tls-ca", "", "`FILE` of the certificate that the other end's must be signed by, PEM")
}

// mostToken bounds the file of a token.
const mostToken = 4096

func (f *accessFlags) access() (queue.Access, error) {
	a := queue.Access{Token: f.token, Cert: f.cert, Key: f.key, CA: f.ca}
	switch {
	case f.token != "" && f.tokenFile != "":
		return a, usagef("--token and --token-file: want one of both")
	case (f.cert == "") != (f.key == ""):
		return a, usagef("--tls-cert and --tls-key go together")
	case f.tokenFile != "":
		text, err := userfile.Read(f.tokenFile, mostToken)
		if err != nil {
			return a, usagef("--token-file %s: %w", f.tokenFile, reason(err))
		}
		if a.Token = strings.TrimSpace(string(text)); a.Token == "" {
			return a, usagef("--token-file %s: it holds no token", f.tokenFile)
		}
	case f.token == "":
		a.Token = os.Getenv(tokenEnv)
	}
	return a, nil
}

// queueError says what is the caller's mistake among the errors of a queue.
func queueError(err error) error {
	for _, mistake := range []error{queue.ErrAccess, queue.ErrMismatch, queue.ErrUnderWay, queue.ErrInUse, queue.ErrNoJetStream} {
		if errors.Is(err, mistake) {
			return usage(err)
		}
	}
	return err
}

// withoutToken is an environment that tells no child of the token.
func withoutToken(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, tokenEnv+"=") })
}

// userInfo is what a URL has before its host: a password may hold an @ too.
var userInfo = regexp.MustCompile(`://.*@`)

// commandLine is how the program was called, without secrets: it is recorded.
func commandLine(args []string) string {
	out := slices.Clone(args)
	for i, a := range out {
		switch {
		case strings.HasPrefix(a, "--token="):
			out[i] = "--token=..."
		case a == "--token" && i+1 < len(out):
			out[i+1] = "..."
		default:
			out[i] = userInfo.ReplaceAllString(a, "://...@")
		}
	}
	return strings.Join(out, " ")
}
