package telemetry_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
)

func TestTurnsAndModelCallsAreCounted(t *testing.T) {
	reader := metric.NewManualReader()
	m, err := telemetry.NewMetrics(metric.NewMeterProvider(metric.WithReader(reader)).Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	tel := telemetry.Telemetry{Metrics: m, Tracer: noop.NewTracerProvider().Tracer("")}
	f := turntest.New(t, agent.Spec{})
	f.Active.Run.WallUsed = time.Second
	f.Active.Proto.State = sessionv1.TurnState_TURN_STATE_COMPLETE
	tel.Finished(f, f.Active)
	tel.Retried(f)
	tel.Denied(f, &store.Denial{Balance: store.Balance{Bound: store.Bound{Scope: store.BudgetUser}}, Kind: store.LimitCost, Soft: true})
	failed := errors.New("broken")
	for _, want := range []error{nil, failed} {
		resp := &model.Response{Usage: &sessionv1.Usage{InputTokens: 3, CacheReadTokens: 4, OutputTokens: 5}}
		if want != nil {
			resp = nil
		}
		got, err := tel.ModelCall(f.Scope, turntest.Model(nil), 1, "", func(state.Scope) (*model.Response, error) { return resp, want })
		if got != resp || !errors.Is(err, want) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	got := counts(t, reader)
	for _, want := range []string{
		"fairlead.turns [{fairlead.turn.state TURN_STATE_COMPLETE}] 1", "fairlead.model.retries [] 1",
		"fairlead.budget.denied [{limit cost} {scope user} {soft true}] 1",
		"gen_ai.client.token.usage [{gen_ai.provider.name p} {gen_ai.token.type input}] 7",
		"gen_ai.client.token.usage [{gen_ai.provider.name p} {gen_ai.token.type output}] 5",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

// counts returns all counters, as `name [attributes] value`.
func counts(t *testing.T, r *metric.ManualReader) []string {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				var attributes []string
				for _, a := range p.Attributes.ToSlice() {
					attributes = append(attributes, fmt.Sprintf("{%s %s}", a.Key, a.Value.String()))
				}
				all = append(all, fmt.Sprintf("%s %v %d", m.Name, attributes, p.Value))
			}
		}
	}
	return all
}
