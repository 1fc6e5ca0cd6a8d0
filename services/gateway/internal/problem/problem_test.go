package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestWhatAClientIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		http   int
		reason string
		words  string
	}{
		{"a service's own error", apierr.New(codes.Aborted, "d", "STALE_EPOCH", "words"), 409, "STALE_EPOCH", "words"},
		{"a service's INTERNAL", apierr.Internal("r1"), 500, "INTERNAL", "r1"},
		{"our own with another HTTP status", BodyTooLarge(5), 413, ReasonBodyTooLarge, "5 bytes"},
		{"a connection that fails", status.Error(codes.Unavailable, "dial tcp 10.0.0.1:9190: refused"), 503, ReasonServiceUnavailable, "try again"},
		{"a deadline at the service", status.Error(codes.DeadlineExceeded, "ten seconds"), 504, ReasonServiceTimeout, "in time"},
		{"a deadline of ours", fmt.Errorf("call: %w", context.DeadlineExceeded), 504, ReasonServiceTimeout, "in time"},
		{"a client that has gone", status.Error(codes.Canceled, "secret"), 499, "", "cancelled"},
		{"a message that is too large for gRPC", status.Error(codes.ResourceExhausted, "secret"), 429, ReasonBodyTooLarge, "larger"},
		{"an error without a status", errors.New("secret"), 500, ReasonInternal, "log"},
		{"an INTERNAL of grpc-go", status.Error(codes.Internal, "secret"), 500, ReasonInternal, "log"},
		{"an UNIMPLEMENTED of grpc-go", status.Error(codes.Unimplemented, "unknown service"), 501, "", "unknown service"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			Write(w, c.err)
			var got struct {
				Code    int
				Message string
				Details []struct{ Reason string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			reason := ""
			if len(got.Details) > 0 {
				reason = got.Details[0].Reason
			}
			if w.Code != c.http || reason != c.reason || !strings.Contains(got.Message, c.words) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			for _, secret := range []string{"secret", "10.0.0.1", "ten seconds"} {
				if strings.Contains(w.Body.String(), secret) {
					t.Errorf("%q is in %s", secret, w.Body)
				}
			}
		})
	}
}

func TestRetryAfterIsInWholeSeconds(t *testing.T) {
	for after, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60"} {
		w := httptest.NewRecorder()
		Write(w, TooManyRequests(after))
		if got := w.Header().Get("Retry-After"); got != want || w.Code != http.StatusTooManyRequests {
			t.Errorf("%s: Retry-After %q, status %d", after, got, w.Code)
		}
	}
}

func TestADetailThatNobodyKnowsIsNamed(t *testing.T) {
	st := status.FromProto(&statuspb.Status{
		Code: int32(codes.NotFound), Message: "gone",
		Details: []*anypb.Any{{TypeUrl: "type.googleapis.com/example.Unknown", Value: []byte{1}}},
	})
	if got := string(JSON(st)); got != `{"code":5,"message":"gone (with type.googleapis.com/example.Unknown)"}` {
		t.Errorf("got %s", got)
	}
}

func TestExcerptsAreShortAndWhole(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("x", 1000), strings.Repeat("é", 1000), strings.Repeat("€", 150), "\xff\xfe"} {
		got := Excerpt(s)
		if len(got) > excerpt+len("…") || !utf8.ValidString(got) {
			t.Errorf("%.20q: %q", s, got)
		}
		if len(s) <= excerpt && utf8.ValidString(s) && got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}
