package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestPayloads(t *testing.T) {
	lost := []store.Wake{{Kind: store.WakeLost}}
	odd := []store.Wake{
		{Key: store.Key{Tenant: "a\n\"b", Session: "ü"}, Kind: store.WakeInbox},
		{Key: store.Key{Tenant: "", Session: "s"}, Kind: store.WakeEvents},
	}
	var many []store.Wake
	for i := range 1000 {
		many = append(many, store.Wake{Key: store.Key{Tenant: "acme", Session: fmt.Sprint("session-", i)}, Kind: store.WakeEvents})
	}
	for _, c := range []struct {
		name    string
		payload string
		want    []store.Wake
	}{
		{"wakes come back as they were", encode(odd), odd},
		{"too many are everything", encode(many), lost},
		{"as many as fit are themselves", encode(many[:200]), many[:200]},
		{"everything", everything, lost},
		{"another version's payload is everything", `{"v":2}`, lost},
		{"a wake of an unknown form is everything", `[["x","t","s"]]`, lost},
		{"a wake that is too short is everything", `[[1,"t"]]`, lost},
		{"nothing is everything", "", lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, decode(c.payload)); d != "" {
				t.Error(d)
			}
			if len(c.payload) >= 8000 {
				t.Errorf("%d bytes", len(c.payload))
			}
		})
	}
	if strings.Contains(encode(odd), "\n") {
		t.Error("a payload of several lines")
	}
}

func TestTheWakesOfALargeCommitAreToldOneByOne(t *testing.T) {
	var many []store.Wake
	for i := range 1000 {
		tenant := "acme"
		if i%300 == 0 {
			tenant = strings.Repeat("long ", 1000) // two of these do not fit into one
		}
		many = append(many, store.Wake{Key: store.Key{Tenant: tenant, Session: fmt.Sprint("session-", i)}, Kind: store.WakeEvents})
	}
	b := &pgx.Batch{}
	queueNotify(b, many...)
	var got []store.Wake
	for _, q := range b.QueuedQueries {
		payload, _ := q.Arguments[1].(string)
		if len(payload) > maxPayload {
			t.Errorf("a payload of %d bytes", len(payload))
		}
		got = append(got, decode(payload)...)
	}
	if d := cmp.Diff(many, got); d != "" {
		t.Error(d)
	}
	if n := len(b.QueuedQueries); n > 20 {
		t.Errorf("%d notifications", n)
	}
}
