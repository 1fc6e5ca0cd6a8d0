package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testAgentRevisions(t *testing.T, open func(t *testing.T) store.Store) {
	f := newFixture(t, open)
	first := store.AgentRevision{Name: "agents/coder", Revision: "r1", Spec: []byte("spec 1")}
	f.must(f.PutAgentRevision(f.ctx(), "acme", first))
	f.must(f.PutAgentRevision(f.ctx(), "acme", store.AgentRevision{Name: "agents/coder", Revision: "r2", Spec: []byte("spec 2")}))
	again := first
	again.Spec = []byte("changed")
	f.must(f.PutAgentRevision(f.ctx(), "acme", again))
	got, err := f.GetAgentRevision(f.ctx(), "acme", "agents/coder", "r1")
	f.must(err)
	if d := cmp.Diff(first, got); d != "" {
		t.Errorf("a revision is immutable: %s", d)
	}
	for _, id := range [][3]string{{"acme", "agents/coder", "r3"}, {"acme", "agents/other", "r1"}, {"other", "agents/coder", "r1"}} {
		if _, err := f.GetAgentRevision(f.ctx(), id[0], id[1], id[2]); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v: %v", id, err)
		}
	}
}

// agentWrite is a write of the agent of this name after the version expected.
func agentWrite(name string, expected int32) store.AgentWrite {
	revision := fmt.Sprintf("r%d", expected+1)
	return store.AgentWrite{
		Tenant: "acme", User: "ann", Expected: expected,
		AgentRevision: store.AgentRevision{Name: "agents/" + name, Revision: revision, Spec: []byte("spec of " + revision)},
	}
}

// writeAgent writes an agent and returns the number of its version.
func (f *fixture) writeAgent(w store.AgentWrite) string {
	f.Helper()
	answer, err := f.WriteAgent(f.ctx(), w)
	f.must(err)
	return strings.TrimPrefix(answer.Value, w.Name+"/versions/")
}

func testAgents(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("versions are counted, and none changes", func(t *testing.T) {
		f := newFixture(t, open)
		for i, want := range []string{"1", "2", "3"} {
			w := agentWrite("a", int32(i))
			if i == 2 { // the content of version 1 again
				w.AgentRevision, w.RestoredFrom, w.User = agentWrite("a", 0).AgentRevision, 1, "bob"
			}
			if got := f.writeAgent(w); got != want {
				t.Errorf("version %s, want %s", got, want)
			}
		}
		for asked, want := range map[int32]store.AgentRow{
			1: {AgentRevision: agentWrite("a", 0).AgentRevision, Version: 1, User: "ann"},
			2: {AgentRevision: agentWrite("a", 1).AgentRevision, Version: 2, User: "ann"},
			3: {AgentRevision: agentWrite("a", 0).AgentRevision, Version: 3, User: "bob", RestoredFrom: 1},
			0: {AgentRevision: agentWrite("a", 0).AgentRevision, Version: 3, User: "bob", RestoredFrom: 1},
		} {
			got, err := f.GetAgent(f.ctx(), "acme", "agents/a", asked)
			f.must(err)
			if d := cmp.Diff(want, got, cmpopts.IgnoreFields(store.AgentRow{}, "VersionTime", "CreateTime")); d != "" {
				t.Errorf("version %d: %s", asked, d)
			}
			if age := time.Since(got.VersionTime); age < -time.Minute || age > time.Minute || got.CreateTime.After(got.VersionTime) {
				t.Errorf("version %d was made at %v, the agent at %v", asked, got.VersionTime, got.CreateTime)
			}
		}
		versions := func(before int32, limit int) (all []int32) {
			rows, err := f.ListAgentVersions(f.ctx(), "acme", "agents/a", before, limit)
			f.must(err)
			for _, r := range rows {
				all = append(all, r.Version)
			}
			return all
		}
		if d := cmp.Diff([][]int32{{3, 2, 1}, {3, 2}, {1}, nil}, [][]int32{versions(0, 0), versions(0, 2), versions(2, 5), versions(1, 0)}); d != "" {
			t.Error(d)
		}
		rev, err := f.GetAgentRevision(f.ctx(), "acme", "agents/a", "r2")
		f.must(err)
		if string(rev.Spec) != "spec of r2" {
			t.Errorf("the revision is %q", rev.Spec)
		}
	})

	t.Run("a deleted agent is gone with its versions, and its name is free", func(t *testing.T) {
		f := newFixture(t, open)
		f.writeAgent(agentWrite("a", 0))
		f.writeAgent(agentWrite("a", 1))
		f.writeAgent(agentWrite("b", 0))
		d := store.DeleteAgent{Tenant: "acme", Name: "agents/a", Jobs: []store.Job{{Tenant: "acme", Kind: store.JobSkill, ID: "x"}}, Request: store.Request{Method: "DeleteAgent", ID: "r"}}
		for _, replayed := range []bool{false, true} {
			answer, err := f.DeleteAgent(f.ctx(), d)
			if f.must(err); answer.Replayed != replayed {
				t.Errorf("replayed: %t", answer.Replayed)
			}
		}
		for _, version := range []int32{0, 1, 2} {
			if _, err := f.GetAgent(f.ctx(), "acme", "agents/a", version); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("version %d: %v", version, err)
			}
		}
		if _, err := f.GetAgentRevision(f.ctx(), "acme", "agents/a", "r1"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("its revision: %v", err)
		}
		jobs, err := f.ClaimJobs(f.ctx(), store.JobClaim{Kinds: []store.JobKind{store.JobSkill}, Limit: 9, TTL: time.Minute})
		if f.must(err); len(jobs) != 1 || jobs[0].ID != "x" {
			t.Errorf("jobs: %+v", jobs)
		}
		d.Request.ID = "other"
		if _, err := f.DeleteAgent(f.ctx(), d); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("again: %v", err)
		}
		if got := f.writeAgent(agentWrite("a", 0)); got != "1" {
			t.Errorf("the new one has version %s", got)
		}
		if _, err := f.GetAgent(f.ctx(), "acme", "agents/b", 1); err != nil {
			t.Errorf("another agent: %v", err)
		}
	})

	t.Run("each collection has a bound of its own", func(t *testing.T) {
		f := newFixture(t, open)
		write := func(name string, expected int32) error {
			w := agentWrite("x", expected)
			w.Name, w.Most, w.MostVersions = name, 1, 2
			_, err := f.WriteAgent(f.ctx(), w)
			return err
		}
		f.must(errors.Join(write("skills/a", 0), write("users/ann/skills/a", 0), write("users/bob/skills/a", 0), write("skills/a", 1)))
		for _, err := range []error{write("skills/b", 0), write("users/ann/skills/b", 0), write("skills/a", 2)} {
			if !errors.Is(err, store.ErrTooMany) {
				t.Errorf("one more: %v", err)
			}
		}
		rows, err := f.ListAgents(f.ctx(), "acme", "users/ann/skills", "", false, 0)
		if f.must(err); len(rows) != 1 || rows[0].Name != "users/ann/skills/a" {
			t.Errorf("ann has %+v", rows)
		}
	})

	t.Run("a write that does not know the newest version changes nothing", func(t *testing.T) {
		f := newFixture(t, open)
		f.writeAgent(agentWrite("a", 0))
		f.writeAgent(agentWrite("a", 1))
		for name, c := range map[string]struct {
			w    store.AgentWrite
			want error
		}{
			"again":         {agentWrite("a", 0), store.ErrExists},
			"of an old one": {agentWrite("a", 1), store.ErrConflict},
			"of one ahead":  {agentWrite("a", 3), store.ErrConflict},
			"of no agent":   {agentWrite("b", 1), store.ErrNotFound},
		} {
			if _, err := f.WriteAgent(f.ctx(), c.w); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		rows, err := f.ListAgentVersions(f.ctx(), "acme", "agents/a", 0, 0)
		f.must(err)
		if len(rows) != 2 {
			t.Errorf("%d versions", len(rows))
		}
		if _, err := f.GetAgentRevision(f.ctx(), "acme", "agents/b", "r2"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the revision of a refused write is kept: %v", err)
		}
	})

	t.Run("an archived agent is out of the list and takes no version", func(t *testing.T) {
		f := newFixture(t, open)
		for _, name := range []string{"c", "a", "b"} {
			f.writeAgent(agentWrite(name, 0))
		}
		other := agentWrite("e", 0)
		other.Name = "environments/a"
		f.writeAgent(other)
		if rows, err := f.ListAgents(f.ctx(), "acme", "environments", "", true, 0); err != nil || len(rows) != 1 || rows[0].Name != other.Name {
			t.Errorf("the environments are %v, %v", rows, err)
		}
		archive := func(undo bool) {
			_, err := f.ArchiveAgent(f.ctx(), store.ArchiveAgent{Tenant: "acme", Name: "agents/b", Undo: undo})
			f.must(err)
		}
		list := func(after string, archived bool, limit int) (names []string) {
			rows, err := f.ListAgents(f.ctx(), "acme", "agents", after, archived, limit)
			f.must(err)
			for _, r := range rows {
				names = append(names, r.Name[len("agents/"):])
			}
			return names
		}
		archive(false)
		first, err := f.GetAgent(f.ctx(), "acme", "agents/b", 0)
		f.must(err)
		archive(false)
		again, err := f.GetAgent(f.ctx(), "acme", "agents/b", 0)
		f.must(err)
		if first.ArchiveTime == nil || !first.ArchiveTime.Equal(*again.ArchiveTime) {
			t.Errorf("archived at %v, then at %v", first.ArchiveTime, again.ArchiveTime)
		}
		if _, err := f.WriteAgent(f.ctx(), agentWrite("b", 1)); !errors.Is(err, store.ErrArchived) {
			t.Errorf("a new version: %v", err)
		}
		if d := cmp.Diff([][]string{{"a", "c"}, {"a", "b", "c"}, {"b"}}, [][]string{list("", false, 0), list("", true, 0), list("agents/a", true, 1)}); d != "" {
			t.Error(d)
		}
		archive(true)
		f.writeAgent(agentWrite("b", 1))
		if d := cmp.Diff([]string{"a", "b", "c"}, list("", false, 0)); d != "" {
			t.Error(d)
		}
		if _, err := f.ArchiveAgent(f.ctx(), store.ArchiveAgent{Tenant: "acme", Name: "agents/none"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("archiving what is not there: %v", err)
		}
	})

	t.Run("an agent belongs to its tenant", func(t *testing.T) {
		f := newFixture(t, open)
		f.writeAgent(agentWrite("a", 0))
		if _, err := f.GetAgent(f.ctx(), "globex", "agents/a", 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("another tenant reads it: %v", err)
		}
		other := agentWrite("a", 0)
		other.Tenant = "globex"
		f.writeAgent(other)
		if _, err := f.ArchiveAgent(f.ctx(), store.ArchiveAgent{Tenant: "globex", Name: "agents/a"}); err != nil {
			t.Error(err)
		}
		mine, err := f.GetAgent(f.ctx(), "acme", "agents/a", 0)
		f.must(err)
		if mine.ArchiveTime != nil {
			t.Error("another tenant archived it")
		}
	})

	t.Run("a request is made once", func(t *testing.T) {
		f := newFixture(t, open)
		w := agentWrite("a", 0)
		w.Request = store.Request{Method: "CreateAgent", ID: "r", Digest: []byte("one"), KeepUntil: time.Now().Add(time.Hour)}
		f.writeAgent(w)
		if answer, err := f.WriteAgent(f.ctx(), w); err != nil || !answer.Replayed || answer.Value != "agents/a/versions/1" {
			t.Errorf("repeated: %v, %v", answer, err)
		}
		reused := w
		reused.Request.Digest = []byte("two")
		if _, err := f.WriteAgent(f.ctx(), reused); !errors.Is(err, store.ErrRequestIDReused) {
			t.Errorf("with another body: %v", err)
		}
	})

	t.Run("of writers that know the same version one wins", func(t *testing.T) {
		f := newFixture(t, open)
		f.writeAgent(agentWrite("a", 0))
		const writers = 8
		errs := make(chan error, writers)
		for range writers {
			go func() {
				_, err := f.WriteAgent(f.ctx(), agentWrite("a", 1))
				errs <- err
			}()
		}
		won := 0
		for range writers {
			switch err := <-errs; {
			case err == nil:
				won++
			case !errors.Is(err, store.ErrConflict):
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d writers won", won)
		}
	})
}
