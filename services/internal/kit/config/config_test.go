package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

type logging struct {
	Level string `key:"level" help:"the level"`
}

func (l logging) Validate() error {
	if l.Level != "info" && l.Level != "debug" {
		return fmt.Errorf("level: %q is no level", l.Level)
	}
	return nil
}

type agent struct {
	Model string        `key:"model"`
	Tools []string      `key:"tools"`
	Limit time.Duration `key:"limit"`
	Key   config.Secret `key:"key"`
}

func (a *agent) Validate() error {
	if a.Model == "none" {
		return errors.New("model: there is no such model")
	}
	return nil
}

type Common struct {
	Grace time.Duration `key:"grace" help:"the grace"`
}

type conf struct {
	Common
	Log      logging          `key:"log"`
	TTL      time.Duration    `key:"lease-ttl" help:"how long"`
	Open     bool             `key:"open"`
	Steps    int              `key:"steps"`
	Small    uint8            `key:"small"`
	Ratio    float64          `key:"ratio"`
	Size     config.Size      `key:"size"`
	Data     string           `key:"data" flag:"data-dir"`
	Tools    []string         `key:"tools"`
	URL      config.Secret    `key:"database-url" env:"FAIRLEAD_DATABASE_URL" help:"where"`
	Token    string           `key:"token" secret:"true" env:"-"`
	Inner    string           `key:"inner" flag:"-"`
	Agents   map[string]agent `key:"agents"`
	Rules    []rule           `key:"rules"`
	NotOurs  string
	OnChange func() `key:"-"`
}

type rule struct {
	Tool  string `key:"tool"`
	Allow bool   `key:"allow"`
}

func (c *conf) Validate() error {
	var faults []error
	if c.Steps < 0 {
		faults = append(faults, errors.New("steps: must not be negative"))
	}
	if c.TTL < 0 {
		faults = append(faults, errors.New("lease-ttl: must not be negative"))
	}
	return errors.Join(faults...)
}

func defaults() conf {
	return conf{
		Common: Common{Grace: time.Second}, Log: logging{Level: "info"}, TTL: 30 * time.Second, Open: true, Steps: 50, Ratio: 0.5,
		Size: 1 << 20, Data: "data", Tools: []string{"Read"},
		Agents: map[string]agent{"coder": {Model: "m", Limit: time.Minute}},
	}
}

func options(env []string, args ...string) config.Options {
	return config.Options{Name: "session", Prefix: "FAIRLEAD_SESSION_", Args: args, Environ: append([]string{"PATH=/bin"}, env...)}
}

func write(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

var ignore = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "OnChange" }, cmp.Ignore())

func diff(want, got conf) string { return cmp.Diff(want, got, ignore) }

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		env  []string
		args []string
		want func(c *conf)
	}{
		"nothing said keeps the defaults": {want: func(*conf) {}},
		"the file sets what it names": {
			file: "lease-ttl: 2m\nlog: {level: debug}\ngrace: 3s\nsize: 16MiB\nratio: 1\ntools: [a, b]\n",
			want: func(c *conf) {
				c.TTL, c.Log.Level, c.Grace, c.Size, c.Ratio, c.Tools = 2*time.Minute, "debug", 3*time.Second, 16<<20, 1, []string{"a", "b"}
			},
		},
		"the environment beats the file, flags beat both": {
			file: "lease-ttl: 1m\nsteps: 1\ndata: file\n",
			env:  []string{"FAIRLEAD_SESSION_LEASE_TTL=2m", "FAIRLEAD_SESSION_STEPS=2"},
			args: []string{"--lease-ttl=3m"},
			want: func(c *conf) { c.TTL, c.Steps, c.Data = 3*time.Minute, 2, "file" },
		},
		"an explicit false, 0 and empty text are heard in the file": {
			file: "open: false\nsteps: 0\ndata: \"\"\ntools: []\nlease-ttl: 0\nratio: 0\n",
			want: func(c *conf) { c.Open, c.Steps, c.Data, c.Tools, c.TTL, c.Ratio = false, 0, "", []string{}, 0, 0 },
		},
		"an explicit false, 0 and empty text are heard in the environment": {
			env:  []string{"FAIRLEAD_SESSION_OPEN=false", "FAIRLEAD_SESSION_STEPS=0", "FAIRLEAD_SESSION_DATA=", "FAIRLEAD_SESSION_TOOLS="},
			want: func(c *conf) { c.Open, c.Steps, c.Data, c.Tools = false, 0, "", []string{} },
		},
		"an explicit false, 0 and empty text are heard in flags": {
			args: []string{"--open=false", "--steps", "0", "--data-dir=", "--tools="},
			want: func(c *conf) { c.Open, c.Steps, c.Data, c.Tools = false, 0, "", []string{} },
		},
		"a truth value needs no text as a flag": {
			file: "open: false\n", args: []string{"--open", "--steps=3"}, want: func(c *conf) { c.Steps = 3 },
		},
		"lists are split at commas, and repeated flags add up": {
			env: []string{"FAIRLEAD_SESSION_TOOLS=x, y"}, args: []string{"--tools=a,b", "--tools=c"},
			want: func(c *conf) { c.Tools = []string{"a", "b", "c"} },
		},
		"mappings add to the defaults and start from them": {
			file: "agents:\n  coder: {tools: [Bash], key: k}\n  \"my.agent/1\": {model: x, limit: 1h}\n",
			want: func(c *conf) {
				c.Agents = map[string]agent{
					"coder":      {Model: "m", Limit: time.Minute, Tools: []string{"Bash"}, Key: "k"},
					"my.agent/1": {Model: "x", Limit: time.Hour},
				}
			},
		},
		"lists of structs": {
			file: "rules:\n- {tool: Bash, allow: true}\n- {tool: Read}\n",
			want: func(c *conf) { c.Rules = []rule{{"Bash", true}, {"Read", false}} },
		},
		"a section without content says nothing": {file: "log:\n", want: func(*conf) {}},
		"an empty file says nothing":             {file: "# only a comment\n", want: func(*conf) {}},
		"a document may begin with its mark":     {file: "---\nsteps: 4\n...\n", want: func(c *conf) { c.Steps = 4 }},
		"a byte order mark says nothing":         {file: "\ufeffsteps: 4\n", want: func(c *conf) { c.Steps = 4 }},
		"a name of its own":                      {env: []string{"FAIRLEAD_DATABASE_URL=postgres://x"}, want: func(c *conf) { c.URL = "postgres://x" }},
		"names of other services and of people are left alone": {
			env:  []string{"FAIRLEAD_TOOLS_X=1", "FAIRLEAD_SANDBOX_LEVEL=full", "FAIRLEAD_GATEWAY_HTTP=:1", "FAIRLEAD_MODEL=m", "OTHER_SESSION_X=1"},
			want: func(*conf) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.file != "" {
				c.args = append(c.args, "--config", write(t, c.file))
			}
			want, got := defaults(), defaults()
			c.want(&want)
			if err := config.Load(&got, options(c.env, c.args...)); err != nil {
				t.Fatal(err)
			}
			if d := diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		env  []string
		args []string
		want []string // each in a fault of its own
	}{
		"an unknown key":                    {file: "leasettl: 1m\n", want: []string{"c.yaml: leasettl is not a key of the configuration; did you mean lease-ttl?"}},
		"an unknown key of a section":       {file: "log: {lewel: info}\n", want: []string{"log.lewel is not a key"}},
		"an unknown key of an entry":        {file: "agents: {a: {modell: x}}\n", want: []string{"agents.a.modell is not a key of the configuration; did you mean model?"}},
		"an unknown name under our prefix":  {env: []string{"FAIRLEAD_SESSION_LEASE=1m"}, want: []string{"FAIRLEAD_SESSION_LEASE in the environment"}},
		"a name of ours without a service":  {env: []string{"FAIRLEAD_LEASE_TTL=1m"}, want: []string{"FAIRLEAD_LEASE_TTL in the environment"}},
		"an unknown flag":                   {args: []string{"--lease-tl=1m"}, want: []string{"--lease-tl: there is no such flag; did you mean lease-ttl?"}},
		"a flag without its value":          {args: []string{"--lease-ttl"}, want: []string{"--lease-ttl: the flag needs a value"}},
		"an argument that is no flag":       {args: []string{"serve"}, want: []string{`"serve" is no flag`}},
		"what only begins like a flag":      {args: []string{"-=0", "---x"}, want: []string{"--: there is no such flag", "--x: there is no such flag"}},
		"a key without a flag, as a flag":   {args: []string{"--inner=x"}, want: []string{"--inner: there is no such flag"}},
		"a duration without a unit":         {file: "lease-ttl: 30\n", want: []string{"lease-ttl is a number and should be a duration with a unit"}},
		"a bad duration in the environment": {env: []string{"FAIRLEAD_SESSION_LEASE_TTL=soon"}, want: []string{`FAIRLEAD_SESSION_LEASE_TTL (key lease-ttl): the value "soon" is not a duration`}},
		"a bad number in a flag":            {args: []string{"--steps=many"}, want: []string{`--steps (key steps): the value "many" is not a whole number`}},
		"an empty number":                   {env: []string{"FAIRLEAD_SESSION_STEPS="}, want: []string{"FAIRLEAD_SESSION_STEPS (key steps)"}},
		"a number that does not fit":        {file: "small: 256\n", want: []string{"small: the value \"256\" is not a whole number from 0 on of 8 bits"}},
		"a text for a truth value":          {file: "open: \"yes\"\n", want: []string{"open is a text and should be true or false"}},
		"another word for a truth value":    {args: []string{"--open=yes"}, want: []string{`--open (key open): the value "yes" is neither true nor false`}},
		"a number for a text":               {file: "data: 010\n", want: []string{"data is a number and should be a text"}},
		"a fraction for a whole number":     {file: "steps: 1.5\n", want: []string{"steps is a number"}},
		"a key without a value":             {file: "data:\n", want: []string{"data has no value"}},
		"a list for a text":                 {file: "data: [x]\n", want: []string{"data is a list"}},
		"a text for a list":                 {file: "tools: x\n", want: []string{"tools is a text and should be a list"}},
		"a text for a section":              {file: "log: debug\n", want: []string{"log is a text and should be a mapping"}},
		"a list at the top":                 {file: "- a\n", want: []string{"cannot be read"}},
		"a key written twice":               {file: "steps: 1\nsteps: 2\n", want: []string{"cannot be read"}},
		"a key written twice deep inside":   {file: "agents: {a: {model: x}, a: {model: y}}\n", want: []string{`already defined`}},
		"a second document":                 {file: "steps: 1\n---\nsteps: 2\n", want: []string{"cannot be read: a second document begins in line 2"}},
		"a document behind an empty one":    {file: "---\n---\nsteps: 2\n", want: []string{"a second document begins"}},
		"a second document that is broken":  {file: "steps: 1\n---\n{\n", want: []string{"cannot be read"}},
		"an anchor that is not there":       {file: "steps: *none\n", want: []string{"unknown anchor 'none'"}},
		"a tab":                             {file: "log:\n\tlevel: info\n", want: []string{"line 2: found character that cannot start any token; indent with spaces, for YAML takes no tabs there"}},
		"a truth value for a text":          {file: "data: true\n", want: []string{"data is a truth value and should be a text"}},
		"a number of a power for a text":    {file: "data: 1e3\n", want: []string{"data is a number and should be a text (quote it)"}},
		"bytes that are no text":            {file: "data: \xff\n", want: []string{"cannot be read"}},
		"a file that is not there":          {args: []string{"--config=/nowhere/c.yaml"}, want: []string{"/nowhere/c.yaml cannot be read"}},
		"a mapping in the environment":      {env: []string{"FAIRLEAD_SESSION_AGENTS=x"}, want: []string{"FAIRLEAD_SESSION_AGENTS (key agents): can only be set in the file"}},
		"a size in no known unit":           {file: "size: 3 furlongs\n", want: []string{"is not a number of bytes"}},
		"what Validate says, with the path": {file: "log: {level: loud}\nagents: {a: {model: none}}\n", want: []string{`log.level: "loud" is no level`, "agents.a.model: there is no such model"}},
		"joined faults apart":               {file: "steps: -1\nlease-ttl: -1s\n", want: []string{"steps: must not be negative", "lease-ttl: must not be negative"}},
		"everything at once": {
			file: "nope: 1\nsteps: x\n", env: []string{"FAIRLEAD_SESSION_NOPE=1", "FAIRLEAD_SESSION_OPEN=maybe"}, args: []string{"--nope", "--also-nope=1", "--ratio=big"},
			want: []string{"nope is not a key", "steps is a text", "FAIRLEAD_SESSION_NOPE", "FAIRLEAD_SESSION_OPEN", "--nope:", "--also-nope:", "--ratio"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.file != "" {
				c.args = append([]string{"--config", write(t, c.file)}, c.args...)
			}
			got := defaults()
			err := config.Load(&got, options(c.env, c.args...))
			var faults *config.Error
			if !errors.As(err, &faults) {
				t.Fatalf("got %v", err)
			}
			if len(faults.Faults) != len(c.want) {
				t.Errorf("%d faults, want %d:\n%v", len(faults.Faults), len(c.want), err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is missing from:\n%v", w, err)
				}
			}
		})
	}
}

func TestFileComesFromTheEnvironment(t *testing.T) {
	got := defaults()
	if err := config.Load(&got, options([]string{"FAIRLEAD_CONFIG=" + write(t, "steps: 7\n")})); err != nil || got.Steps != 7 {
		t.Errorf("steps %d, error %v", got.Steps, err)
	}
}

func TestRest(t *testing.T) {
	var rest []string
	o := options(nil, "--steps=2", "run", "--not-mine")
	o.Rest = &rest
	got := defaults()
	if err := config.Load(&got, o); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"run", "--not-mine"}, rest); d != "" || got.Steps != 2 {
		t.Errorf("steps %d, rest %s", got.Steps, d)
	}
}

// The program with all services has their prefixes as its own sections, so there they are checked.
func TestAllInOneChecksEveryPrefix(t *testing.T) {
	var all struct {
		Session conf `key:"session"`
	}
	all.Session = defaults()
	o := config.Options{Name: "fairlead", Prefix: "FAIRLEAD_", IgnoreEnv: []string{"FAIRLEAD_SERVER"}, Environ: []string{
		"FAIRLEAD_SESSION_LEASE_TTL=9s", "FAIRLEAD_SERVER=x", "FAIRLEAD_DATABASE_URL=u", "FAIRLEAD_CONFIG="}}
	if err := config.Load(&all, o); err != nil || all.Session.TTL != 9*time.Second || all.Session.URL != "u" {
		t.Errorf("%+v, %v", all.Session, err)
	}
	o.Environ = []string{"FAIRLEAD_SESSION_LEASE=1s", "FAIRLEAD_SANDBOX_X=1"}
	err := config.Load(&all, o)
	if err == nil || !strings.Contains(err.Error(), "FAIRLEAD_SESSION_LEASE in") || !strings.Contains(err.Error(), "FAIRLEAD_SANDBOX_X in") {
		t.Errorf("got %v", err)
	}
}

func TestHelp(t *testing.T) {
	var b bytes.Buffer
	o := options(nil, "--help", "--nope")
	o.Usage = &b
	got := defaults()
	if err := config.Load(&got, o); !errors.Is(err, config.ErrHelp) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"--lease-ttl (default 30s)", "FAIRLEAD_SESSION_LEASE_TTL", "--log.level", "--config FILE", "FAIRLEAD_DATABASE_URL"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing from\n%s", want, &b)
		}
	}
}

func TestTable(t *testing.T) {
	c := defaults()
	c.URL, c.Token = "postgres://bob:pw@host/db", "hunter2"
	got := map[string]config.Row{}
	for _, r := range config.Table(&c, config.Options{Prefix: "FAIRLEAD_SESSION_"}) {
		got[r.Key] = r
	}
	for _, want := range []config.Row{
		{Key: "grace", Flag: "--grace", Env: "FAIRLEAD_SESSION_GRACE", Type: "duration", Default: "1s", Help: "the grace"},
		{Key: "log.level", Flag: "--log.level", Env: "FAIRLEAD_SESSION_LOG_LEVEL", Type: "text", Default: "info", Help: "the level"},
		{Key: "database-url", Flag: "--database-url", Env: "FAIRLEAD_DATABASE_URL", Type: "text", Help: "where"},
		{Key: "token", Flag: "--token", Type: "text"},
		{Key: "data", Flag: "--data-dir", Env: "FAIRLEAD_SESSION_DATA", Type: "text", Default: "data"},
		{Key: "agents", Type: "mapping", Default: "coder", Entry: []config.Row{
			{Key: "model", Type: "text"}, {Key: "tools", Type: "list"}, {Key: "limit", Type: "duration"}, {Key: "key", Type: "text"},
		}},
		{Key: "size", Flag: "--size", Env: "FAIRLEAD_SESSION_SIZE", Type: "bytes", Default: "1MiB"},
		{Key: "open", Flag: "--open", Env: "FAIRLEAD_SESSION_OPEN", Type: "true or false", Default: "true"},
	} {
		if d := cmp.Diff(want, got[want.Key]); d != "" {
			t.Error(d)
		}
	}
	if len(got) != 15 {
		t.Errorf("%d rows", len(got))
	}
}

func TestSecretHidesItself(t *testing.T) {
	s := struct {
		Key   config.Secret
		Inner *config.Secret
	}{Key: "hunter2"}
	var text, js bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", "key", s.Key, "all", s)
	slog.New(slog.NewJSONHandler(&js, nil)).Info("x", "key", s.Key, "all", s)
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		"%v": fmt.Sprintf("%v", s), "%+v": fmt.Sprintf("%+v", s), "%#v": fmt.Sprintf("%#v", s), "%s": fmt.Sprintf("%s", s.Key),
		"%q": fmt.Sprintf("%q", s.Key), "%x": fmt.Sprintf("%x", s.Key), "%d": fmt.Sprintf("%d", s.Key), "print": fmt.Sprint(s.Key),
		"text log": text.String(), "json log": js.String(), "json": string(b), "error": fmt.Errorf("%w %v", errors.New("x"), s.Key).Error(),
	} {
		if strings.Contains(got, "hunter2") || strings.Contains(got, "68756e74657232") || !strings.Contains(got, "redacted") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if s.Key.Reveal() != "hunter2" {
		t.Error("Reveal does not return the secret")
	}
}

func TestFaultsHideSecrets(t *testing.T) {
	type c struct {
		N int `key:"n" secret:"true"`
	}
	err := config.Load(&c{}, config.Options{Prefix: "FAIRLEAD_SESSION_", Environ: []string{"FAIRLEAD_SESSION_N=hunter2"}, Args: []string{"--n=hunter3"}})
	if err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v", err)
	}
}

func TestStructsThatCannotWork(t *testing.T) {
	type inner struct {
		A string `key:"a"`
	}
	for name, dst := range map[string]any{
		"not a pointer": inner{},
		"a key twice": &struct {
			A string `key:"a"`
			B string `key:"a"`
		}{},
		"a function with a key": &struct {
			F func() `key:"f"`
		}{},
		"a type that is not exported": &struct{ inner }{},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it is taken")
				}
			}()
			_ = config.Table(dst, config.Options{})
		})
	}
}

func TestSize(t *testing.T) {
	for in, want := range map[string]config.Size{
		"0": 0, "4096": 4096, "16MiB": 16 << 20, "2 GB": 2e9, "1.5KiB": 1536, "9223372036854775807": 1<<63 - 1, "1B": 1, "-1": -1, "3TiB": 3 << 40,
	} {
		var got config.Size
		if err := got.UnmarshalText([]byte(in)); err != nil || got != want {
			t.Errorf("%q: %d, %v", in, got, err)
		}
		var again config.Size
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%q does not survive as %q: %d, %v", in, got, again, err)
		}
	}
	for _, in := range []string{"", "MiB", "1.5B", "1e400GB", "NaN", "Inf KB", "99999999999999999999", "1 MIB", "0x10"} {
		var got config.Size
		if err := got.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is taken for %d", in, got)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("lease-ttl: 2m\nagents: {a: {model: x}}\n", "30s", "--steps=1")
	f.Add("rules:\n- {tool: Bash, allow: true}\n", "", "--tools=a,b")
	f.Add("? [a]\n: b\n", "x", "--")
	f.Add("a: &a [*a]\n", "\x00", "-")
	f.Add("log: !!binary x\n1: 2\n", "", "--open")
	f.Fuzz(func(t *testing.T, file, env, arg string) {
		got := defaults()
		err := config.Load(&got, options([]string{"FAIRLEAD_SESSION_LEASE_TTL=" + env}, "--config", write(t, file), arg))
		var faults *config.Error
		if err != nil && !errors.As(err, &faults) && !errors.Is(err, config.ErrHelp) {
			t.Fatalf("an error that names no fault: %v", err)
		}
		if err == nil && (got.Steps < 0 || got.TTL < 0 || got.Log.Level != "info" && got.Log.Level != "debug") {
			t.Fatalf("accepted in spite of Validate: %+v", got)
		}
	})
}
