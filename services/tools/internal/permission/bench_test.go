package permission

import (
	"fmt"
	"syscall"
	"testing"
)

// hundred has a profile with 100 rules, two filters and 50 grants.
func hundred(t testing.TB) *Policy {
	var r Rules
	for i := range 60 {
		r.Allow = append(r.Allow, fmt.Sprintf("Bash(tool%d sub *)", i))
	}
	r.Allow = append(r.Allow, "Bash(git *)", "Bash(go *)", "Bash(ls *)", "Read", "Grep")
	for i := range 15 {
		r.Ask = append(r.Ask, fmt.Sprintf("Bash(deploy%d *)", i))
	}
	r.Ask = append(r.Ask, "Bash(git push *)")
	for i := range 19 {
		r.Deny = append(r.Deny, fmt.Sprintf("Bash(forbidden%d *)", i))
	}
	p := profile(t, r)
	p.Filters = []*Profile{
		filter(t, Rules{Deny: []string{"Bash(curl *)", "Bash(wget *)", "Read(./secret/**)"}, Ask: []string{"Bash(make *)"}}),
		filter(t, Rules{Deny: []string{"Bash(rm -rf *)"}, DisabledTools: []string{"Write"}}),
	}
	for i := range 50 {
		text := fmt.Sprintf("Bash(granted%d *)", i)
		if i == 49 {
			text = "Bash(git push *)"
		}
		g, err := NewGrant(bash, text, "ann always")
		if err != nil {
			t.Fatal(err)
		}
		p.Grants = append(p.Grants, g)
	}
	return p
}

const fiveParts = `git fetch origin && git log --oneline -5 | ls -l; go test ./services/tools/internal/permission -run 'TestX' && go vet ./...`

// pushing has a part that only a grant answers.
const pushing = `git fetch origin && git log --oneline -5 | ls -l; go test ./services/tools/internal/permission -run 'TestX' && git push origin main`

func BenchmarkDecide(b *testing.B) {
	p := hundred(b)
	for name, command := range map[string]string{"rules": fiveParts, "grant": pushing} {
		b.Run(name, func(b *testing.B) {
			q := Request{Tool: bash, Command: command}
			if d := p.Decide(q); d.Kind != Allow {
				b.Fatal(d.Rule)
			}
			begin := cpu(b)
			for b.Loop() {
				p.Decide(q)
			}
			b.ReportMetric(float64(cpu(b)-begin)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpu returns the processor time of the program: other programs do not count.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		parseScript(fiveParts, &meter{})
	}
}
