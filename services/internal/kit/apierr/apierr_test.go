package apierr_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// overTheWire is what a client gets of err.
func overTheWire(err error) error { return status.ErrorProto(status.Convert(err).Proto()) }

func TestDetailsSurviveTheWire(t *testing.T) {
	err := overTheWire(apierr.New(codes.ResourceExhausted, "test.fairlead.dev", "TOO_MUCH", "too much of it; ask again later",
		apierr.Metadata(map[string]string{"limit": "3"}), apierr.Metadata(map[string]string{"unit": "turns"}),
		apierr.Field("a.b[0]", "is wrong"), apierr.Field("c", "is missing"),
		apierr.Resource("Session", "sessions/1", "is full"), apierr.RetryAfter(1500*time.Millisecond),
		apierr.Precondition("STATE", "sessions/1", "is closed"), apierr.Quota("tenant:x", "3 turns"), apierr.Quota("tenant:y", "4 turns")))
	if apierr.Code(err) != codes.ResourceExhausted || apierr.Reason(err) != "TOO_MUCH" || apierr.ErrorDomain(err) != "test.fairlead.dev" ||
		apierr.Message(err) != "too much of it; ask again later" {
		t.Errorf("got %v, %q, %q, %q", apierr.Code(err), apierr.Reason(err), apierr.ErrorDomain(err), apierr.Message(err))
	}
	want := []any{
		&errdetails.ErrorInfo{Domain: "test.fairlead.dev", Reason: "TOO_MUCH", Metadata: map[string]string{"limit": "3", "unit": "turns"}},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "a.b[0]", Description: "is wrong"}, {Field: "c", Description: "is missing"}}},
		&errdetails.PreconditionFailure{Violations: []*errdetails.PreconditionFailure_Violation{{Type: "STATE", Subject: "sessions/1", Description: "is closed"}}},
		&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "tenant:x", Description: "3 turns"}, {Subject: "tenant:y", Description: "4 turns"}}},
		&errdetails.ResourceInfo{ResourceType: "Session", ResourceName: "sessions/1", Description: "is full"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)},
	}
	if diff := cmp.Diff(want, status.Convert(err).Details(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if retry, ok := apierr.Detail[*errdetails.RetryInfo](err); !ok || retry.GetRetryDelay().AsDuration() != 1500*time.Millisecond {
		t.Errorf("RetryInfo: %v, %v", retry, ok)
	}
	if _, ok := apierr.Detail[*errdetails.Help](err); ok {
		t.Error("found a detail that is not there")
	}
}

func TestReadingOtherErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		code    codes.Code
		message string
	}{
		"nothing":                            {nil, codes.OK, ""},
		"an error without a status":          {errors.New("x"), codes.Unknown, "x"},
		"a wrapped error keeps its own text": {fmt.Errorf("outside: %w", apierr.New(codes.Aborted, "d", "R", "inside")), codes.Aborted, "inside"},
		"a status without details":           {status.Error(codes.NotFound, "gone"), codes.NotFound, "gone"},
		"an OK that is none":                 {apierr.New(codes.OK, "d", "R", "m"), codes.Internal, "m"},
		"details that cannot be sent":        {apierr.New(codes.NotFound, "d", "R", "m", apierr.Field("\xff", "")), codes.NotFound, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			if apierr.Code(c.err) != c.code || apierr.Message(c.err) != c.message {
				t.Errorf("code %v, message %q", apierr.Code(c.err), apierr.Message(c.err))
			}
		})
	}
}

func TestForward(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	theirs := overTheWire(apierr.New(codes.Unavailable, "sandbox.fairlead.dev", "STARTING", "the sandbox starts", apierr.RetryAfter(time.Second)))
	wrapped := fmt.Errorf("exec: %w", theirs)

	got := apierr.Sanitize(t.Context(), log, "/m", fmt.Errorf("more words: %w", apierr.Forward(wrapped)))
	if diff := cmp.Diff(status.Convert(theirs).Proto(), status.Convert(got).Proto(), protocmp.Transform()); diff != "" {
		t.Errorf("a forwarded status changed: %s", diff)
	}
	if !errors.Is(apierr.Forward(wrapped), wrapped) {
		t.Error("Forward loses the error")
	}
	if got := apierr.Sanitize(t.Context(), log, "/m", wrapped); apierr.Code(got) != codes.Internal || strings.Contains(got.Error(), "sandbox") {
		t.Errorf("a peer's status went out without Forward: %v", got)
	}
	if apierr.Forward(nil) != nil {
		t.Error("Forward makes an error of nothing")
	}
	plain := errors.New("x")
	if got := apierr.Forward(plain); !errors.Is(got, plain) || apierr.Code(got) != codes.Unknown {
		t.Errorf("an error without a status became %v", got)
	}
}

func TestSanitizeEndOfContext(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want codes.Code
	}{
		"our context's end is CANCELLED":                         {t.Context(), fmt.Errorf("q: %w", context.Canceled), codes.Canceled},
		"a peer that reports the end of our context":             {ended, status.Error(codes.Canceled, "their words"), codes.Canceled},
		"a peer that cancels for a reason of its own is a fault": {t.Context(), status.Error(codes.Canceled, "their words"), codes.Internal},
		"another error after our context's end is a fault":       {ended, errors.New("disk"), codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			got := apierr.Sanitize(c.ctx, log, "/m", c.err)
			if apierr.Code(got) != c.want || strings.Contains(got.Error(), "their words") {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestErrorIsAProtoStatusForGRPC(t *testing.T) {
	err := apierr.New(codes.NotFound, "d", "R", "m")
	s, ok := status.FromError(err)
	if !ok || !proto.Equal(s.Proto(), status.Convert(err).Proto()) || err.Error() != "NotFound: m" {
		t.Errorf("%v, %v, %q", s, ok, err)
	}
}
