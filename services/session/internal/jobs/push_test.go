package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// empty is a node that has no workspace.
type empty struct {
	grpc.ClientConnInterface
	asked int
}

func (n *empty) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	n.asked++
	return apierr.Of(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND, "there is no workspace")
}

// placed is a store of one session.
type placed struct {
	store.Store
	place store.Place
	told  []store.Submit
}

func (s *placed) PlaceOf(context.Context, store.Key) (store.Place, int64, error) {
	return s.place, 1, nil
}

func (s *placed) Submit(_ context.Context, told store.Submit) (store.Answer, error) {
	s.told = append(s.told, told)
	return store.Answer{}, nil
}

func TestAPushWaitsForAWorkspaceThatIsStillToBeRestored(t *testing.T) {
	body, err := json.Marshal(Push{Turn: "sessions/s/turns/t", URL: "https://git.example.com/a", Directory: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		place store.Place
		asked int
		waits bool
	}{
		"nothing ever needed a workspace": {store.Place{Node: "n"}, 1, false},
		"it is still to be restored":      {store.Place{Node: "n", Restore: true}, 0, true},
		"its node has lost it":            {store.Place{Node: "n", Made: true}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			n, s := &empty{}, &placed{place: c.place}
			deps := Deps{Sandbox: remote.NewSandbox(n), Store: s, Log: slog.New(slog.DiscardHandler)}
			job := store.Job{Tenant: "t", Session: "s", ID: "s/t/a", Body: body, Attempt: 1}
			if _, err := deps.pushRepository(t.Context(), job); (err != nil) != c.waits || n.asked != c.asked || len(s.told) > 0 {
				t.Fatalf("%v after %d calls, told %d times", err, n.asked, len(s.told))
			}
			job.Attempt = pushTries
			if _, err := deps.pushRepository(t.Context(), job); err != nil || (len(s.told) == 1) != c.waits {
				t.Fatalf("in the end: %v, told %d times", err, len(s.told))
			}
			if !c.waits {
				return
			}
			var e sessionv1.Event
			if err := proto.Unmarshal(s.told[0].Command.Body, &e); err != nil || e.GetRepositoryPushFailed().GetReason() != "NODE_LOST" {
				t.Errorf("told %v, %v", &e, err)
			}
		})
	}
}
