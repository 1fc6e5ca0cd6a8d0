package terminal_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"an error of this program", errors.New("plain"), "plain"},
		{"a reason follows the message", apierr.New(codes.NotFound, "x.fairlead.dev", "NO_SUCH", "There is none."), "There is none. (NO_SUCH)"},
		{"fields are listed", apierr.New(codes.InvalidArgument, "x.fairlead.dev", "BAD", "It is wrong.", apierr.Field("a.b", "is empty"), apierr.Field("c", "is long")),
			"It is wrong. (BAD)\n  a.b: is empty\n  c: is long"},
		{"a field whose fault is the message", apierr.New(codes.InvalidArgument, "x.fairlead.dev", "BAD", "It is wrong.", apierr.Field("a.b", "It is wrong.")), "It is wrong. (BAD)\n  a.b"},
		{"a field whose fault is the beginning of the message", apierr.New(codes.InvalidArgument, "x.fairlead.dev", "BAD", "It is wrong. Try x.", apierr.Field("a.b", "It is wrong. T…")),
			"It is wrong. Try x. (BAD)\n  a.b"},
		{"a resource that the message does not name", apierr.New(codes.NotFound, "x.fairlead.dev", "NO_SUCH", "There is none.", apierr.Resource("x", "things/t1", "")),
			"There is none. (NO_SUCH)\n  things/t1"},
		{"a resource that the message names", apierr.New(codes.NotFound, "x.fairlead.dev", "NO_SUCH", "There is no t1.", apierr.Resource("x", "things/t1", "")),
			"There is no t1. (NO_SUCH)"},
		{"a status without details", status.Error(codes.Unavailable, "not there"), "not there"},
		{"a status without a message", status.Error(codes.Unavailable, ""), "Unavailable"},
		{"escape sequences of the server are left out", status.Error(codes.Internal, "a\x1b]0;owned\x07b"), "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := terminal.Explain(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := terminal.Explained(c.err).Error(); got != c.want || strings.ContainsRune(got, '\x1b') {
				t.Errorf("wrapped: %q", got)
			}
		})
	}
	if terminal.Explained(nil) != nil {
		t.Error("no error became one")
	}
}
