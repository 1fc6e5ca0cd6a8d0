package modelproxy_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// world is a proxy in front of fake providers, served over HTTP.
type world struct {
	*testing.T
	url               string
	anthropic, openai *modeltest.Server
	responses         *modeltest.Server
	ledger            store.Store
	used              []*sessionv1.Usage
	parties           budget.Parties
	ended             func() // waits for the end of all calls
}

// setting is what a test chooses.
type setting struct {
	script  modeltest.Script
	budgets budget.Config
	idle    time.Duration
	models  map[string]catalog.Limits
	own     map[string]catalog.OwnEntry // of the caller's tenant
	lost    error                       // why the tenant's entries cannot be read
	tracer  trace.Tracer
}

// names are those of the tenant, as the server keeps them.
func (s setting) names(models *catalog.Catalog) modelproxy.Names {
	find := func(_ context.Context, name string) (catalog.Entry, error) {
		o, ok := s.own[name]
		switch {
		case s.lost != nil:
			return catalog.Entry{}, s.lost
		case ok:
			return models.Narrow(name, o)
		case strings.HasPrefix(name, catalog.Own+":"):
			return catalog.Entry{}, store.ErrNotFound
		}
		return models.Resolve(name)
	}
	return modelproxy.Names{Find: find, Own: func(ctx context.Context) (all []catalog.Entry, _ error) {
		for _, name := range slices.Sorted(maps.Keys(s.own)) {
			if e, err := find(ctx, name); err == nil {
				all = append(all, e)
			}
		}
		return all, s.lost
	}}
}

var migrated = sqlitetest.NewTemplate(sqlite.Migrations())

func newWorld(t *testing.T, s setting) *world {
	t.Helper()
	w := &world{T: t, anthropic: modeltest.Anthropic(t, s.script), openai: modeltest.OpenAI(t, s.script), responses: modeltest.Responses(t, s.script)}
	limits := map[string]catalog.Limits{"wrong:m": {}, "gone:m": {}, "open:m": {}, "empty:m": {}, "resp:gpt-5.5": {}}
	maps.Copy(limits, s.models)
	models, err := catalog.New(catalog.Config{
		AnthropicKey: modeltest.Key, AnthropicBaseURL: w.anthropic.URL, OpenAIKey: modeltest.Key, OpenAIBaseURL: w.openai.URL,
		Providers: map[string]catalog.Provider{
			"wrong": {Kind: "anthropic", BaseURL: w.anthropic.URL, Key: config.Secret("sk-wrong-1234567")},
			"gone":  {Kind: "anthropic", BaseURL: "http://127.0.0.1:1", Key: "k"},
			"resp":  {Kind: "openai", BaseURL: w.responses.URL, API: "responses", Key: modeltest.Key},
			"open":  {Kind: "anthropic", BaseURL: lingering(t, w.anthropic.URL), Key: modeltest.Key},
			"empty": {Kind: "openai", BaseURL: w.openai.URL, KeyEnv: "NONE_SET"},
		},
		Models: limits, IdleTimeout: time.Minute,
	}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "session.db")
	migrated.Copy(t, file)
	ledger, err := sqlite.Open(t.Context(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close() })
	w.ledger = ledger
	metrics, err := telemetry.NewMetrics(metricnoop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	if s.tracer == nil {
		s.tracer = tracenoop.NewTracerProvider().Tracer("")
	}
	p := modelproxy.New(modelproxy.Config{
		Models: models, Names: s.names(models), Ledger: ledger, Budgets: s.budgets, Metrics: metrics, Tracer: s.tracer,
		Idle: s.idle, Log: slog.New(slog.DiscardHandler),
	})
	w.parties = budget.Parties{Tenant: "acme", User: "ada"}
	srv := httptest.NewServer(p.Handler(modelproxy.Payer{Parties: w.parties, Used: func(_ string, u *sessionv1.Usage) { w.used = append(w.used, u) }}))
	t.Cleanup(func() { srv.Close(); p.Close() })
	w.url, w.ended = srv.URL, srv.Close
	return w
}

// client makes the requests; each has a context with its own end.
var client = &http.Client{}

// answer is a whole HTTP answer.
type answer struct {
	code   int
	header http.Header
	body   string
}

func (w *world) post(path, body string, header ...string) answer {
	w.Helper()
	a, err := post(w.Context(), w.url+path, body, header...)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *world) get(path string) answer {
	w.Helper()
	a, err := send(w.Context(), http.MethodGet, w.url+path, "")
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func post(ctx context.Context, url, body string, header ...string) (answer, error) {
	return send(ctx, http.MethodPost, url, body, header...)
}

func send(ctx context.Context, method, url, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}

// balance is that of the user's budget when no call is under way: a call is settled a moment after its answer.
func (w *world) balance() store.Balance {
	w.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { //nolint:forbidigo // the ledger has no event for it
		all, err := w.ledger.Balances(w.Context(), "acme", []store.Bound{{Scope: store.BudgetUser, Subject: "ada"}})
		if err != nil {
			w.Fatal(err)
		}
		if all[0].Reserved == (store.Amount{}) || time.Now().After(deadline) {
			return all[0]
		}
	}
}

func userBudget(tokens int64) budget.Config {
	return budget.Config{Scopes: budget.Scopes{User: budget.Windowed{Limits: budget.Limits{MaxTokens: tokens}}}}
}
