package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// attempts is the header in which the official clients of Anthropic and OpenAI count the attempts of a request.
const attempts = "X-Stainless-Retry-Count"

// Claim returns the idempotency key of a request with a body: a new one for a first attempt, and for a repetition the
// one of the latest equal request of the caller. The session service remembers it, so any replica may get the
// repetition. A key of the client's own is used as it is, within the name of the wire.
func (s *Server) Claim(r *http.Request, wire string, body []byte) (string, error) {
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		return RequestID(wire, key), nil
	}
	h := sha256.New()
	for _, part := range []string{r.Method, r.URL.Path} {
		h.Write([]byte(part + "\x00"))
	}
	h.Write(body)
	caller, ok := principal.From(r.Context())
	if !ok {
		caller = principal.Default()
	}
	count, err := strconv.Atoi(r.Header.Get(attempts))
	ctx, cancel := context.WithTimeout(principal.With(r.Context(), principal.Service(caller.Tenant, caller.User)), s.Timeout)
	defer cancel()
	answer, err := s.keys.ClaimRequestKey(ctx, &sessionv1.ClaimRequestKeyRequest{
		Tenant: caller.Tenant, User: caller.User, Digest: hex.EncodeToString(h.Sum(nil)), Repeated: err == nil && count > 0,
	})
	return answer.GetKey(), err
}

// Asked returns what was asked before a call may run; nil if nothing was. A call's id begins with that of its turn.
func (s *Server) Asked(ctx context.Context, session, turn, call string) (found *sessionv1.ApprovalRequested, err error) {
	err = s.asked(ctx, session, turn, func(ev *sessionv1.Event) bool {
		if a := ev.GetApprovalRequested(); a.GetCallId() == call {
			found = a
		}
		return found != nil
	})
	return found, err
}

// asked hands the events of a turn to is, in order, until it reports true. A turn that does not exist has none.
func (s *Server) asked(ctx context.Context, session, turn string, is func(*sessionv1.Event) bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	got, err := s.Sessions.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: session + "/turns/" + turn})
	if code := problem.HTTPStatus(err); err != nil && (code == http.StatusNotFound || code == http.StatusBadRequest) {
		return nil
	} else if err != nil {
		return err
	}
	req := &sessionv1.ListEventsRequest{Parent: session, AfterSeq: got.GetTurn().GetAfterSeq(), PageSize: eventPage}
	for ev, err := range All(ctx, s.Sessions.ListEvents, req, (*sessionv1.ListEventsResponse).GetEvents) {
		if err != nil || is(ev) {
			return err
		}
	}
	return nil
}
