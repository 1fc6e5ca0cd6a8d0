package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

// TestEveryReasonIsUsed walks the contract: a reason that no error becomes is a
// promise that is not kept.
func TestEveryReasonIsUsed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, r := range rules {
		err := status(fmt.Errorf("do it: %w", r.err))
		if apierr.Code(err) != r.code || apierr.Reason(err) != apierr.Name(r.reason) || apierr.ErrorDomain(err) != domain {
			t.Errorf("%v becomes %v", r.err, err)
		}
		used[apierr.Reason(err)] = true
	}
	for _, err := range []error{&box.CeilingError{Field: "timeout"}, &files.EditError{}, &files.EditError{Found: 2}} {
		used[apierr.Reason(status(err))] = true
	}
	for number := range sandboxv1.ErrorReason_name {
		r := sandboxv1.ErrorReason(number)
		if r != sandboxv1.ErrorReason_ERROR_REASON_UNSPECIFIED && !used[apierr.Name(r)] {
			t.Errorf("no error has the reason %s", apierr.Name(r))
		}
	}
}

func TestEveryExitReasonIsTold(t *testing.T) {
	t.Parallel()
	told := map[sandboxv1.ExitReason]bool{sandboxv1.ExitReason_EXIT_REASON_UNSPECIFIED: true}
	for r := range reasons {
		told[exited(box.Outcome{Reason: r}).GetReason()] = true
	}
	if len(told) != len(sandboxv1.ExitReason_name) {
		t.Errorf("%d of %d reasons", len(told), len(sandboxv1.ExitReason_name))
	}
}

func TestEveryNetworkOutcomeIsTold(t *testing.T) {
	t.Parallel()
	told := map[sandboxv1.NetworkOutcome]bool{sandboxv1.NetworkOutcome_NETWORK_OUTCOME_UNSPECIFIED: true}
	for o := range outcomes {
		told[uses([]box.Use{{Outcome: string(o)}})[0].GetOutcome()] = true
	}
	if len(told) != len(sandboxv1.NetworkOutcome_name) {
		t.Errorf("%d of %d outcomes", len(told), len(sandboxv1.NetworkOutcome_name))
	}
}

func TestWhatIsNotKnownIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, context.Canceled, errors.New("disk on fire")} {
		if got := status(err); got != err { //nolint:errorlint // the very same error is wanted
			t.Errorf("%v became %v", err, got)
		}
	}
	if got := status(box.ErrClosed); apierr.Code(got) != codes.Unavailable {
		t.Errorf("%v", got)
	}
}

// A job repeats a call under its id until it succeeds: what a command is in the way of now may
// be done later.
func TestWhatACommandIsInTheWayOfIsNoAnswerForGood(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("%w: remove d: %w", snapshot.ErrChanged, unix.ENOTDIR)
	if told := status(err); apierr.Code(told) != codes.FailedPrecondition || !apierr.Is(told, sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE) || !strings.Contains(told.Error(), "remove d") {
		t.Errorf("callers are told %v", told)
	}
	if raw := failure(err); raw != nil {
		t.Errorf("it is kept: %q", raw)
	}
}
