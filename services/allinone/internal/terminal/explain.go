package terminal

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/program"
)

// Explain formats an error of the server for a person: its message, what it is
// about, the wrong fields, and the reason for programs. It returns the text of other errors. The
// result may be shown on a terminal.
func Explain(err error) string {
	st, ok := status.FromError(err)
	if !ok || st.Code() == codes.OK {
		return Clean(err.Error())
	}
	lines := []string{apierr.Message(err)}
	if lines[0] == "" {
		lines[0] = st.Code().String()
	}
	if reason := apierr.Reason(err); reason != "" {
		lines[0] += " (" + reason + ")"
	}
	if about, ok := apierr.Detail[*errdetails.ResourceInfo](err); ok {
		if name := about.GetResourceName(); name != "" && !strings.Contains(lines[0], name[strings.LastIndex(name, "/")+1:]) {
			lines = append(lines, "  "+name)
		}
	}
	if bad, ok := apierr.Detail[*errdetails.BadRequest](err); ok {
		for _, v := range bad.GetFieldViolations() {
			line := "  " + v.GetField()
			if why := strings.TrimSuffix(v.GetDescription(), "…"); !strings.Contains(apierr.Message(err), why) {
				line += ": " + v.GetDescription()
			}
			lines = append(lines, line)
		}
	}
	if bad, ok := apierr.Detail[*errdetails.PreconditionFailure](err); ok {
		for _, v := range bad.GetViolations() {
			lines = append(lines, "  "+v.GetDescription())
		}
	}
	return Clean(strings.Join(lines, "\n"))
}

// Error is an error of the server with the text of Explain.
type Error struct{ err error }

// Explained wraps err so that its text is that of Explain.
func Explained(err error) error {
	if err == nil {
		return nil
	}
	return &Error{err}
}

// Error returns the text of Explain.
func (e *Error) Error() string { return Explain(e.err) }

// Unwrap returns the error within.
func (e *Error) Unwrap() error { return e.err }

// Usage returns a fault in the command line, which ends the program with the code for wrong usage.
func Usage(format string, args ...any) error {
	return &program.ExitError{Code: 2, Err: fmt.Errorf(format, args...)}
}
