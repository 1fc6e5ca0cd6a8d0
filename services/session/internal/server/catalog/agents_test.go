package catalog

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/placement"
)

// telling is a sandbox service that tells what it can do, or does not.
type telling struct {
	Sandbox
	tell func(context.Context) error
}

func (t telling) Capabilities(ctx context.Context, _ string) (*sandboxv1.GetCapabilitiesResponse, error) {
	return &sandboxv1.GetCapabilitiesResponse{Level: "basic", Driver: "fake"}, t.tell(ctx)
}

// answering answers for a server that can do this, and has no models.
func answering(c Capabilities) *AgentServer {
	return &AgentServer{Config: &Config{Directory: directory.New(directory.Config{Models: &catalog.Catalog{}}), Log: slog.New(slog.DiscardHandler), Capabilities: c}}
}

// A sandbox service that does not tell is none that is not there, and its text is the operator's.
func TestCapabilitiesSayThatTheSandboxServiceIsAway(t *testing.T) {
	for name, tc := range map[string]struct {
		tell func(context.Context) error
		want string
	}{
		"it tells":                  {func(context.Context) error { return nil }, ""},
		"it is away":                {func(context.Context) error { return status.Error(codes.Unavailable, "dial tcp 10.0.0.7:9192: refused") }, "cannot be reached"},
		"it fails":                  {func(context.Context) error { return status.Error(codes.Internal, "at 10.0.0.7") }, "failed to list"},
		"it does not answer":        {func(ctx context.Context) error { <-ctx.Done(); return status.FromContextError(ctx.Err()).Err() }, "did not answer within 5s"},
		"an error without a status": {func(context.Context) error { return errors.New("no node at 10.0.0.7") }, "failed to list"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := answering(Capabilities{Sandbox: telling{tell: tc.tell}, Version: "v"})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r, err := s.GetCapabilities(ctx, &sessionv1.GetCapabilitiesRequest{})
				if err != nil || r.GetVersion() != "v" {
					t.Fatalf("%v, %v", r, err)
				}
				why := r.GetSandboxUnavailable()
				if (r.GetSandbox() == nil) != (tc.want != "") || (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) || strings.Contains(why, "10.0.0.7") {
					t.Errorf("told %v", r)
				}
			})
		})
	}
}

// Nothing is answered to who does not wait for it.
func TestWhoAsksForCapabilitiesMayLeave(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	s := answering(Capabilities{Sandbox: telling{tell: func(ctx context.Context) error {
		leave()
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}}})
	if r, err := s.GetCapabilities(ctx, &sessionv1.GetCapabilitiesRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", r, err)
	}
}

// A node that is away is asked first, and does not speak for the others.
func TestCapabilitiesAreThoseOfANodeThatAnswers(t *testing.T) {
	for name, away := range map[string]func(context.Context) error{
		"one refuses":         func(context.Context) error { return status.Error(codes.Unavailable, "refused") },
		"one does not answer": func(ctx context.Context) error { <-ctx.Done(); return status.FromContextError(ctx.Err()).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				s := answering(Capabilities{Nodes: placement.New(placement.Config{Names: []string{"a", "b"}}), Sandbox: telling{tell: func(ctx context.Context) error {
					if asked++; asked == 1 {
						return away(ctx)
					}
					return nil
				}}})
				r, err := s.GetCapabilities(t.Context(), &sessionv1.GetCapabilitiesRequest{})
				if err != nil || asked != 2 || r.GetSandbox().GetDriver() != "fake" || r.GetSandboxUnavailable() != "" {
					t.Errorf("asked %d: %v, %v", asked, r, err)
				}
			})
		})
	}
}
