// Package doors attacks every RPC and every REST path of a running server with every credential that must not open
// it. The attacks are made from the descriptors, so a new RPC, path or kind of resource is attacked, too.
package doors

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

func TestMain(m *testing.M) {
	// A connection's heartbeat ends by itself, at its next beat.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

func TestNoDoorOpensForAnyoneElse(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { attackAll(t, "") })
	t.Run("Postgres", func(t *testing.T) {
		prove.Only(t, "it is the same attack, on the other database")
		attackAll(t, pgtest.New(t))
	})
}

// attackAll attacks a server on a database.
func attackAll(t *testing.T, database string) {
	t.Helper()
	w := build(t, database)
	all := doors(t)
	current(t, all)
	w.share(t)
	emptyRival, emptyBob := w.view(t, all, "rival"), w.view(t, all, "bob")
	w.furnish(t)
	differ(t, "what rival sees changes with what acme has", emptyRival, w.view(t, all, "rival"))
	differ(t, "what bob sees changes with what ann has", emptyBob, w.view(t, all, "bob"))

	a := &attack{t: t, world: w, doors: all, routes: routes(t, all), refusals: map[string]string{}}
	before, hers, audited := w.view(t, all, "acme"), w.view(t, all, "ann"), w.audit(t, all)
	w.check(t, before, hers)
	callers := w.callers()
	inside := slices.IndexFunc(callers, func(c credential) bool { return c.may == own })
	a.run(w.bad)
	a.run(callers[:inside])
	differ(t, "acme changed", before, w.view(t, all, "acme"))
	refused := w.audit(t, all)[len(audited):]
	if len(audited) < 10 || len(refused) < 20 {
		t.Errorf("the audit log had %d entries, and has %d of the attacks", len(audited), len(refused))
	}
	for _, e := range refused {
		if e.Code == "OK" || e.Tenant != "acme" {
			t.Errorf("the audit log has %+v", e)
		}
	}
	a.run(callers[inside:])
	differ(t, "what is ann's changed", hers, w.view(t, all, "ann"))
	t.Logf("%d RPCs over gRPC and %d REST paths × %d credentials: %d attacks", len(all), len(a.routes), len(w.bad)+len(callers), a.n)

	w.visit(t)
	w.knock(t)
	w.repeat(t)
	w.checkRecords(t)
	w.enter(t, all, a.routes)
	w.checkRecords(t)
}

// attack calls every door.
type attack struct {
	*world
	t        *testing.T
	doors    []door
	routes   []route
	refusals map[string]string // the text for a credential
	n        int
}

// run calls the doors with each credential. `make test` tries most credentials at some doors only, each one at others,
// because one piece of code in front of all doors reads them; `make prove` tries all at all.
func (a *attack) run(credentials []credential) {
	for i, c := range credentials {
		n := c.sampled()
		for j, d := range some(a.doors, i, n) {
			a.callRPC(c, d, !testing.Short() || (i+j)%8 == 0)
		}
		for _, r := range some(a.routes, i, n) {
			a.callRoute(c, r)
		}
	}
}

// some returns every n-th of all in `make test`.
func some[E any](all []E, from, n int) []E {
	if testing.Short() {
		all = all[from%n:]
	}
	return prove.Sample(all, n)
}

// sampled returns the share of doors at which `make test` tries a credential.
func (c credential) sampled() int {
	switch {
	case c.may == nothing:
		return 24
	case c.name == "rival", c.name == "bob" && c.may == own:
		return 1
	}
	return 8
}

// callRPC calls an RPC over gRPC, and if wanted over gRPC-Web.
func (a *attack) callRPC(c credential, d door, web bool) {
	call := func(w writer) answer { return a.overGRPC(a.t, d, w.request(), c) }
	if d.internal() {
		if got := call(a.writer(a.t, d)); got.code != codes.Unimplemented {
			a.t.Errorf("%s with %s: an internal RPC answers %s", d.short(), c.name, got)
		}
		if got := a.overWeb(a.t, d, a.writer(a.t, d).request(), c); got.code != codes.NotFound && got.code != codes.Unimplemented && got.code != codes.Unauthenticated {
			a.t.Errorf("%s over gRPC-Web with %s: an internal RPC answers %s", d.short(), c.name, got)
		}
		a.n += 2
		return
	}
	a.judge(c, d, d.kind(), "gRPC "+d.short(), call)
	if web && !d.rpc.IsStreamingClient() {
		a.judge(c, d, d.kind(), "gRPC-Web "+d.short(), func(w writer) answer { return a.overWeb(a.t, d, w.request(), c) })
	}
}

func (a *attack) callRoute(c credential, r route) {
	a.judge(c, r.door, r.kind(), r.name(), func(w writer) answer { return a.overREST(a.t, r.request(w), c) })
}

// judge makes a call, and checks its outcome.
func (a *attack) judge(c credential, d door, kind, what string, call func(writer) answer) {
	want := outcomeOf(c, d, kind)
	if want == notAttempted {
		return
	}
	what += " with " + c.name
	w := a.writer(a.t, d)
	got := call(w)
	a.n++
	a.leaks(c, what, got)
	switch want {
	case unknown:
		a.unknown(c, what, got)
	case denied:
		if got.code != codes.PermissionDenied || got.status != 0 && got.status != 403 || !because[got.reason] {
			a.t.Errorf("%s: %s", what, got)
		}
	case hidden, sameAsNone:
		if got.code == codes.InvalidArgument { // it names another foreign resource, too
			w.broad = true
			got = call(w)
		}
		if refused := got.code == codes.NotFound || got.code == codes.PermissionDenied; want == hidden && (!refused || got.reason == "" || got.status == 200) {
			a.t.Errorf("%s: %s", what, got)
		}
		w.names = missing(a.names)
		none := call(w)
		a.n++
		if got.code != none.code || got.status != none.status || got.code != codes.OK && a.general(got.text) != a.general(none.text) {
			a.t.Errorf("%s: acme's is told from what does not exist:\n%s\n%s", what, got, none)
		}
	}
	if d.reads() && c.may != nothing && want != denied {
		w = a.writer(a.t, d)
		w.broad = true
		a.leaks(c, what+", as a list", call(w))
		a.n++
	}
}

// because are the reasons for which a role or a scope is not enough.
var because = map[string]bool{"ROLE_REQUIRED": true, "SCOPE_REQUIRED": true, "in the header alone": true}

// unknown checks the answer to a credential that belongs to no user. It does not depend on the door.
func (a *attack) unknown(c credential, what string, got answer) {
	if got.code != codes.Unauthenticated || got.reason == "" {
		a.t.Errorf("%s: %s", what, got)
	}
	answered := c.name + " over " + strings.Fields(what)[0]
	if got.status != 0 {
		answered = c.name + " over REST"
		if got.status != 401 || !strings.HasPrefix(got.challenge, "Bearer") {
			a.t.Errorf("%s: WWW-Authenticate: %q, %s", what, got.challenge, got)
		}
	}
	if first := a.refusals[answered]; first == "" || got.text == "" { // the answer to HEAD has no body
		a.refusals[answered] = got.text
	} else if first != got.text {
		a.t.Errorf("%s: %s, and another door says %s", what, got, first)
	}
}

// leaks checks that an answer has no word that is not the caller's to see.
func (a *attack) leaks(c credential, what string, got answer) {
	words := a.private
	if c.may == elsewhere || c.may == nothing {
		words = append(slices.Clone(words), a.shared...)
	}
	text := strings.ToLower(a.general(got.text + got.raw)) // a name that the request had is no news
	for _, word := range words {
		known := c.name == "root" && word == a.shared[0] // it knows the tenants
		if strings.Contains(text, word) && !known {
			a.t.Errorf("%s: the answer has %q: %s", what, word, got)
		}
	}
	for _, secret := range a.secrets {
		if strings.Contains(got.text+got.raw, secret) {
			a.t.Errorf("%s: the answer has a credential: %s", what, got)
		}
	}
}

func (w *world) writer(t *testing.T, d door) writer {
	return writer{t: t, absent: w.absent, names: w.names, values: w.values, door: d}
}

const absentID = "nothing7"

// missing returns names of resources that do not exist.
func missing(names map[string]string) map[string]string {
	none := maps.Clone(names)
	for kind, name := range names {
		parts, kinds := strings.Split(name, "/"), strings.Split(kind, "/")
		for i := range kinds {
			if kinds[i] == "*" {
				parts[i] = absentID
				if provider, _, ok := strings.Cut(strings.Split(name, "/")[i], ":"); ok { // of a model
					parts[i] = provider + ":" + absentID
				}
				if strings.Trim(strings.Split(name, "/")[i], "0123456789") == "" {
					parts[i] = "987"
				}
			}
		}
		none[kind] = strings.Join(parts, "/")
	}
	return none
}

// general returns a text with the kinds of resources instead of their names.
func (w *world) general(text string) string {
	none := missing(w.names)
	kinds := slices.SortedFunc(maps.Keys(w.names), func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, kind := range kinds {
		text = strings.NewReplacer(w.names[kind], kind, none[kind], kind).Replace(text)
	}
	for _, name := range w.names { // an id alone
		if id := name[strings.LastIndexByte(name, '/')+1:]; len(id) > 20 {
			text = strings.ReplaceAll(text, id, "*")
		}
	}
	text = strings.ReplaceAll(text, absentID, "*")
	return text
}
