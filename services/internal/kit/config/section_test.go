package config_test

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

func TestAnUnknownKeyThatIsBelowASectionSaysSo(t *testing.T) {
	type part struct {
		Log    logging          `key:"log"`
		Agents map[string]agent `key:"agents"`
		Data   string           `key:"data"`
	}
	for name, c := range map[string]struct {
		file string
		args []string
		want string
	}{
		"a mapping":              {file: "agents: {a: {model: x}}\n", want: "agents is not a key of the configuration; did you mean session.agents?"},
		"a section":              {file: "log: {level: info}\n", want: "log is not a key of the configuration; did you mean session.log?"},
		"a key of two sections":  {file: "data: x\n", want: "did you mean session.data or tools.data?"},
		"a flag":                 {args: []string{"--data=x"}, want: "--data: there is no such flag; did you mean session.data or tools.data?"},
		"only similar":           {file: "sesion: {}\n", want: "did you mean session?"},
		"below a section itself": {file: "session: {tools: {}}\n", want: "session.tools is not a key of the configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			var all struct {
				Session part `key:"session"`
				Tools   struct {
					Data string `key:"data"`
				} `key:"tools"`
			}
			all.Session.Log.Level = "info"
			o := config.Options{Name: "fairlead", Environ: []string{"A=b"}, Args: c.args}
			if c.file != "" {
				o.Args = append(o.Args, "--config="+write(t, c.file))
			}
			if err := config.Load(&all, o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}
