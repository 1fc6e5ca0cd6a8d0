package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// AcceptForSubagent returns the first state of a turn for which the active turn of s waits.
func (s *Session) AcceptForSubagent(r *sessionv1.CreateTurnRequest, trace map[string]string) ([]byte, error) {
	request, err := proto.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("marshal the request: %w", err)
	}
	nearest := Above{Session: s.Lease.Session, Turn: s.Active.ID}
	if nearest.Budget, err = proto.Marshal(s.Proto.Budget); err != nil {
		return nil, fmt.Errorf("marshal the session's budget: %w", err)
	}
	if nearest.Limits, err = proto.Marshal(s.Active.Proto.Limits); err != nil {
		return nil, fmt.Errorf("marshal the turn's limits: %w", err)
	}
	run := Run{Origin: Origin{Request: request, User: s.Active.Run.User, Trace: trace}, Above: append([]Above{nearest}, s.Active.Run.Above...)}
	for _, limit := range s.Active.Run.Budget.Allowed { // a person who let the turn pass is not asked again
		if strings.HasPrefix(limit, "user ") || strings.HasPrefix(limit, "tenant ") {
			run.Budget.Allowed = append(run.Budget.Allowed, limit)
		}
	}
	run.Budget.Allowed = slices.Compact(run.Budget.Allowed)
	return json.Marshal(run)
}

// Budgets returns the budget of the session and the limits of the turn.
func (a Above) Budgets() (*sessionv1.Budget, *sessionv1.TurnLimits, error) {
	budget, limits := &sessionv1.Budget{}, &sessionv1.TurnLimits{}
	if err := proto.Unmarshal(a.Budget, budget); err != nil {
		return nil, nil, fmt.Errorf("read the budget of session %s: %w", a.Session, err)
	}
	if err := proto.Unmarshal(a.Limits, limits); err != nil {
		return nil, nil, fmt.Errorf("read the limits of turn %s: %w", a.Turn, err)
	}
	return budget, limits, nil
}
