package integration

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
)

func TestKeysOfTheAdminCommandAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return pgtest.New(t) },
	} {
		for tenant, first := range map[string]string{"default": "CreateUser users/root", "acme": "CreateTenant tenants/acme"} {
			t.Run(name+" "+tenant, func(t *testing.T) {
				t.Parallel()
				f := prepare(t, greets, func(c *session.Config) { c.DatabaseURL = config.Secret(database(t)) })
				keysOfAnAdmin(t, f.config, tenant)
				f.run(t)
				t.Cleanup(func() { f.stop() })
				checkAdminEntries(t, f, tenant, first)
			})
		}
	}
}

// keysOfAnAdmin makes the first key and another one.
func keysOfAnAdmin(t *testing.T, c session.Config, tenant string) {
	t.Helper()
	admin, err := session.OpenAdmin(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	first, err := admin.Init(t.Context(), tenant, "root")
	if err != nil {
		t.Fatal(err)
	}
	second, err := admin.NewKey(t.Context(), tenant, "root")
	if err != nil || first == second {
		t.Fatal(err)
	}
	if _, err := admin.Init(t.Context(), tenant, "root"); !errors.Is(err, session.ErrInitialized) {
		t.Errorf("a second first key: %v", err)
	}
	if _, err := admin.NewKey(t.Context(), tenant, "missing"); !errors.Is(err, session.ErrNoUser) {
		t.Errorf("a key of no user: %v", err)
	}
	if err := admin.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkAdminEntries compares the audit log with the two keys of a tenant.
func checkAdminEntries(t *testing.T, f *fixture, tenant, first string) {
	t.Helper()
	root := principal.With(t.Context(), principal.Principal{Tenant: tenant, User: "root", Role: principal.RoleAdmin})
	keys, err := sessionv1.NewIdentityServiceClient(f.conn).ListKeys(root, &sessionv1.ListKeysRequest{}) // the newest first
	if err != nil || len(keys.Keys) != 2 {
		t.Fatalf("%v, %v", keys, err)
	}
	log, err := sessionv1.NewAuditServiceClient(f.conn).ListAuditEntries(root, &sessionv1.ListAuditEntriesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range log.Entries {
		if e.User != "users/root" || e.Credential != "fairlead admin" || e.Code != "OK" || e.Time == nil {
			t.Errorf("entry %v", e)
		}
		got = append(got, strings.TrimPrefix(e.Method, "fairlead.session.v1.IdentityService.")+" "+e.Resource)
	}
	want := []string{first, "CreateKey " + keys.Keys[1].Name, "UpdateUser users/root", "CreateKey " + keys.Keys[0].Name}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
