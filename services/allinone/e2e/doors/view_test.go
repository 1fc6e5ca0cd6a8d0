package doors

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// auditScope is the scope of the audit log, in which a refused attempt is an entry.
const auditScope = "audit.read"

// entry is an entry of the audit log.
type entry struct{ Tenant, User, Method, Resource, Code string }

// audit returns acme's audit log.
func (w *world) audit(t *testing.T, all []door) (entries []entry) {
	t.Helper()
	for _, d := range all {
		if d.rule.Scope != auditScope || d.internal() {
			continue
		}
		for token := ""; ; {
			var page struct {
				Entries       []entry
				NextPageToken string
			}
			wr := w.writer(t, d)
			wr.broad = true
			m := wr.request().ProtoReflect()
			m.Set(fieldOf(m, "page_token"), protoreflect.ValueOfString(token))
			got := w.overGRPC(t, d, m.Interface(), w.of("acme"))
			if err := json.Unmarshal([]byte(got.text), &page); err != nil || got.code != codes.OK {
				t.Fatalf("the audit log: %s %v", got, err)
			}
			entries = append(entries, page.Entries...)
			if token = page.NextPageToken; token == "" {
				break
			}
		}
	}
	return entries
}

// check checks that the admin of acme or ann sees every word that others must not see, so that a leak would show.
func (w *world) check(t *testing.T, seen ...map[string]string) {
	t.Helper()
	if len(seen[0]) < 40 {
		t.Errorf("only %d lists and resources are compared", len(seen[0]))
	}
	var text strings.Builder
	for _, view := range seen {
		for _, v := range view {
			text.WriteString(strings.ToLower(v))
		}
	}
	for _, word := range append(slices.Clone(w.private), w.shared...) {
		if !strings.Contains(text.String(), word) {
			t.Errorf("no caller sees %q, so a leak of it would not show", word)
		}
	}
}

var used = regexp.MustCompile(`,?"lastUseTime":"[^"]*"`)

// view returns everything that a caller can read, by RPC.
func (w *world) view(t *testing.T, all []door, who string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, d := range all {
		if d.internal() || !d.reads() || d.follows() || d.rule.Scope == auditScope {
			continue
		}
		for _, broad := range []bool{true, false} {
			if len(w.names) < 10 && (!broad || d.kind() != "" && w.names[d.kind()] == "") {
				continue // before there is anything
			}
			wr := w.writer(t, d)
			wr.broad = broad
			got := w.overGRPC(t, d, wr.request(), w.of(who))
			name := d.short()
			if !broad {
				name += " of one"
			}
			if got.code == codes.OK {
				seen[name] = used.ReplaceAllString(got.text, "")
				if strings.Contains(got.text, `"data":`) {
					seen[name] += got.raw
				}
			}
		}
	}
	return seen
}

// differ compares two views.
func differ(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	for name, text := range before {
		if diff := cmp.Diff(text, after[name]); diff != "" {
			t.Errorf("%s: %s (-before +after):\n%s", what, name, diff)
		}
	}
}
