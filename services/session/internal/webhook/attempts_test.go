package webhook

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var created = time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)

// rows is a store that holds one delivery.
type rows struct {
	store.Store
	mu    sync.Mutex
	row   *store.DeliveryRow // nil: none
	turn  *sessionv1.Turn    // nil: none
	noted []store.Delivered
	err   error
}

func (s *rows) GetDelivery(context.Context, string, string) (*store.DeliveryRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.row == nil || s.err != nil {
		return nil, cmpErr(s.err)
	}
	return s.row, nil
}

func (s *rows) GetTurn(context.Context, store.Key, string) (*sessionv1.Turn, error) {
	if s.turn == nil {
		return nil, store.ErrNotFound
	}
	return s.turn, nil
}

func (s *rows) Delivered(_ context.Context, d store.Delivered) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted = append(s.noted, d)
	return nil
}

func cmpErr(err error) error {
	if err == nil {
		return store.ErrNotFound
	}
	return err
}

func newRows(url string, attempts int32, age time.Duration) *rows {
	return &rows{
		turn: &sessionv1.Turn{Name: "sessions/s/turns/t", State: sessionv1.TurnState_TURN_STATE_COMPLETE, EndTime: timestamppb.New(created)},
		row: &store.DeliveryRow{
			WebhookRow: store.WebhookRow{Webhook: &sessionv1.Webhook{Name: "webhooks/w", Url: url}, Secret: []byte("hush")},
			Key:        store.Key{Tenant: "acme", Session: "s"}, TurnID: "t", Now: created.Add(age),
			Delivery: &sessionv1.Delivery{Id: "w_t", State: store.DeliveryPending, Attempts: attempts, CreateTime: timestamppb.New(created)},
		},
	}
}

func newDeliverer(t *testing.T, s store.Store) (*Deliverer, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	c := Defaults()
	c.AllowHTTP, c.AllowPrivate = true, true
	d, err := New(c, s, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"), slog.New(slog.NewTextHandler(t.Output(), nil)), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d, reader
}

var job = store.Job{Tenant: "acme", Kind: store.JobWebhook, ID: "w_t", Session: "s"}

func TestDeliver(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		answer   http.HandlerFunc
		attempts int32
		age      time.Duration
		want     store.Delivered
		outcome  string
		next     time.Duration // after creation, a fifth more or less of the pause; 0: none
	}{
		"what is taken is delivered": {
			status(200, nil), 2, time.Hour, store.Delivered{State: store.DeliveryDelivered, Attempts: 3, LastStatus: 200}, "delivered", 0,
		},
		"what fails is sent again": {
			status(500, nil), 0, 0, store.Delivered{State: store.DeliveryPending, Attempts: 1, LastStatus: 500, LastError: "the answer was 500 Internal Server Error"}, "retry", 5 * time.Second,
		},
		"the receiver may ask for more time": {
			status(429, map[string]string{"Retry-After": "600"}), 0, 0,
			store.Delivered{State: store.DeliveryPending, Attempts: 1, LastStatus: 429, LastError: "the answer was 429 Too Many Requests"}, "retry", 10 * time.Minute,
		},
		"the last attempt is a day after the turn's end": {
			status(503, map[string]string{"Retry-After": "99999999"}), 9, 23 * time.Hour,
			store.Delivered{State: store.DeliveryPending, Attempts: 10, LastStatus: 503, LastError: "the answer was 503 Service Unavailable"}, "retry", day,
		},
		"then it is given up": {
			status(500, nil), 10, day, store.Delivered{State: store.DeliveryFailed, Attempts: 11, LastStatus: 500, LastError: "the answer was 500 Internal Server Error"}, "failed", 0,
		},
		"a webhook that is gone is not asked again": {
			status(410, nil), 0, 0, store.Delivered{State: store.DeliveryFailed, Attempts: 1, LastStatus: 410, LastError: "the answer was 410 Gone, so it is not sent again"}, "failed", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			s := newRows(server.URL, c.attempts, c.age)
			d, metrics := newDeliverer(t, s)
			again, err := d.Deliver(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Tenant, c.want.ID = "acme", "w_t"
			if diff := cmp.Diff([]store.Delivered{c.want}, s.noted, cmpopts.IgnoreFields(store.Delivered{}, "Next")); diff != "" {
				t.Error(diff)
			}
			if (again == nil) != (c.next == 0) {
				t.Fatalf("again %+v", again)
			}
			if again != nil {
				got := again.Due.Sub(created)
				if got < c.next*4/5 || got > c.next*6/5 || !again.Due.Equal(s.noted[0].Next) {
					t.Errorf("next after %v, noted %v", got, s.noted[0].Next)
				}
			}
			if got := counted(t, metrics); !cmp.Equal(got, map[string]int64{c.outcome: 1}) {
				t.Errorf("counted %v", got)
			}
		})
	}
}

func counted(t *testing.T, r *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints { //nolint:forcetypeassert // it is a counter
				v, _ := p.Attributes.Value(attribute.Key("fairlead.webhook.outcome"))
				out[v.AsString()] = p.Value
			}
		}
	}
	return out
}

func TestAMessageIsSignedWithTheOldSecretTooWhileItLasts(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Duration // after now
		old   bool          // whether the old secret signs
	}{
		"before its end": {time.Second, true}, "at its end": {0, false}, "after it": {-time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			verified := make(chan [3]error, 1)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var errs [3]error
				for i, secret := range []string{"hush", "old hush", "another"} {
					wh, err := standardwebhooks.NewWebhookRaw([]byte(secret))
					if err == nil {
						err = wh.Verify(body, r.Header)
					}
					errs[i] = err
				}
				verified <- errs
			}))
			defer server.Close()
			s := newRows(server.URL, 0, 0)
			s.row.OldSecret, s.row.OldUntil = []byte("old hush"), s.row.Now.Add(c.until)
			d, _ := newDeliverer(t, s)
			if _, err := d.Deliver(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			if errs := <-verified; errs[0] != nil || (errs[1] == nil) != c.old || errs[2] == nil {
				t.Errorf("verified with the new secret, the old and another: %v", errs)
			}
		})
	}
}

func TestNothingIsSentForWhatIsGoneOrDone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("something was sent") }))
	defer server.Close()
	for name, change := range map[string]func(*rows){
		"the webhook was deleted": func(s *rows) { s.row = nil },
		"the session was deleted": func(s *rows) { s.turn = nil },
		"it was delivered before": func(s *rows) { s.row.Delivery.State = store.DeliveryDelivered },
		"it was given up before":  func(s *rows) { s.row.Delivery.State = store.DeliveryFailed },
	} {
		t.Run(name, func(t *testing.T) {
			s := newRows(server.URL, 0, 0)
			change(s)
			d, _ := newDeliverer(t, s)
			if again, err := d.Deliver(t.Context(), job); again != nil || err != nil || len(s.noted) > 0 {
				t.Error(again, err, s.noted)
			}
		})
	}
}

func TestAnAttemptThatTheServersEndCutsOffIsNone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the client leaves
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	s := newRows(server.URL, 0, 0)
	d, _ := newDeliverer(t, s)
	if again, err := d.Deliver(ctx, job); err == nil || again != nil || len(s.noted) > 0 {
		t.Error(again, err, s.noted)
	}
}

// A host that does not answer holds as many attempts of its tenant as it may;
// the rest come back later, and other hosts and tenants go on.
func TestASlowHostHoldsUpNobodyElse(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, perHost)
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer slow.Close()
	s := newRows(slow.URL, 0, 0)
	d, _ := newDeliverer(t, s)
	var held sync.WaitGroup
	for range perHost {
		held.Go(func() {
			if again, err := d.Deliver(t.Context(), job); err != nil || again != nil {
				t.Error(again, err)
			}
		})
		<-arrived
	}
	again, err := d.Deliver(t.Context(), job)
	if err != nil || again == nil || len(s.noted) != 0 {
		t.Fatalf("%+v, %v, noted %v", again, err, s.noted)
	}
	if wait := again.Due.Sub(created); wait < busyPause || wait > 2*busyPause {
		t.Errorf("it comes back after %v", wait)
	}
	if done, ok := d.enter("other", slow.URL); ok {
		done()
	} else {
		t.Error("another tenant may not call the host")
	}
	if done, ok := d.enter("acme", "http://elsewhere/"); ok {
		done()
	} else {
		t.Error("the tenant may not call another host")
	}
	close(release)
	held.Wait()
	if len(d.busy) != 0 || len(s.noted) != perHost {
		t.Errorf("left %v, noted %v", d.busy, s.noted)
	}
}
