package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

func TestEveryReasonHasACase(t *testing.T) {
	cases := map[toolsv1.ErrorReason][]failure{}
	for _, f := range failures {
		cases[f.reason] = append(cases[f.reason], f)
	}
	for number, name := range toolsv1.ErrorReason_name {
		reason := toolsv1.ErrorReason(number)
		if number == 0 {
			continue
		}
		if len(cases[reason]) == 0 {
			t.Errorf("no error of ours has the reason %s", reason)
		}
		for _, f := range cases[reason] {
			told := outward(fmt.Errorf("words for the log: %w", f.is), "the subject")
			if apierr.Reason(told) != strings.TrimPrefix(name, "ERROR_REASON_") || apierr.ErrorDomain(told) != domain || apierr.Code(told) != f.code {
				t.Errorf("%s: told as %v", reason, told)
			}
			if strings.Contains(apierr.Message(told), "words for the log") {
				t.Errorf("%s: the message shows what is for the log: %q", reason, apierr.Message(told))
			}
			checkDetail(t, f, told)
		}
	}
}

// checkDetail wants the detail that belongs to the code.
func checkDetail(t *testing.T, f failure, err error) {
	t.Helper()
	ok := false
	switch f.code {
	case codes.NotFound, codes.AlreadyExists, codes.Aborted, codes.PermissionDenied:
		_, ok = apierr.Detail[*errdetails.ResourceInfo](err)
	case codes.FailedPrecondition:
		_, ok = apierr.Detail[*errdetails.PreconditionFailure](err)
	case codes.InvalidArgument:
		_, ok = apierr.Detail[*errdetails.BadRequest](err)
	case codes.Unavailable:
		_, ok = apierr.Detail[*errdetails.RetryInfo](err)
	}
	if !ok {
		t.Errorf("%s: %v has not the detail that goes with its code", f.reason, f.code)
	}
}

func TestOtherErrors(t *testing.T) {
	if err := outward(nil, ""); err != nil {
		t.Errorf("got %v", err)
	}
	other := errors.New("boom")
	if err := outward(other, ""); !errors.Is(err, other) {
		t.Errorf("got %v", err)
	}
	away := apierr.New(codes.Unavailable, apierr.Domain, node.ReasonNodeAway, "it is on the server a")
	for _, err := range []error{fmt.Errorf("%w: %w", tool.ErrUnavailable, away), errors.Join(tool.ErrUnavailable, away)} {
		if told := outward(err, ""); apierr.Reason(told) != node.ReasonNodeAway || apierr.Message(told) != "it is on the server a" {
			t.Errorf("a server that is away is told as %v", told)
		}
	}
	forwarded := outward(fmt.Errorf("call the sandbox: %w", apierr.Of(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_STALE_GENERATION, "moved")), "")
	if !apierr.Is(forwarded, sandboxv1.ErrorReason_ERROR_REASON_STALE_GENERATION) || apierr.Code(forwarded) != codes.FailedPrecondition {
		t.Errorf("got %v", forwarded)
	}
	if err := outward(tool.ErrClosing, ""); apierr.Reason(err) != apierr.ReasonDraining || apierr.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}
