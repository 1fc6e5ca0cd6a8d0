package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var secretIn = regexp.MustCompile(`fl_[A-Za-z0-9_-]{43}`)

func TestTheFirstKeyOfTheServicesApart(t *testing.T) {
	t.Setenv("FAIRLEAD_DATABASE_URL", "")
	t.Setenv("FAIRLEAD_SESSION_PEER", "127.0.0.1:0") // what the container of the service has in its environment
	t.Setenv("FAIRLEAD_SESSION_LOG_LEVEL", "error")
	data := t.TempDir()
	for _, c := range []struct {
		args []string
		want string // in the output, or in the error
		ok   bool
	}{
		{[]string{"init", "--data", data}, "users/admin in the tenant default", true},
		{[]string{"init", "--data", data}, "there is a key already, of the tenant default in the database " + filepath.Join(data, "session.db"), false},
		{[]string{"init", "--data", data, "--tenant", "acme", "--user=root"}, "users/root in the tenant acme", true},
		{[]string{"key", "--data", data}, "users/admin in the tenant default", true},
		{[]string{"key", "--data", data, "--user", "zoe"}, "no such user: zoe of the tenant default", false},
		{[]string{"key", "--data", data, "--tenant", "globex"}, "no such user: admin of the tenant globex", false},
		{[]string{"inti", "--data", data}, "usage: session admin init|key", false},
		{nil, "usage: session admin init|key", false},
	} {
		var out strings.Builder
		err := admin(t.Context(), c.args, &out)
		text := out.String()
		if err != nil {
			text = err.Error()
		}
		if (err == nil) != c.ok || secretIn.MatchString(text) != c.ok || !strings.Contains(text, c.want) {
			t.Errorf("%v: %s", c.args, text)
		}
	}
}
