package box

import (
	"strings"
)

// Environment returns the environment of a command: clean defaults and the command's own variables.
func (c Command) Environment(path, home, dir string) []string {
	term := "dumb"
	if c.Terminal != nil {
		term = "xterm-256color"
	}
	env := []string{
		"HOME=" + home, "USER=agent", "LOGNAME=agent", "SHELL=/bin/bash", "PATH=" + path, "LANG=C.UTF-8",
		"TERM=" + term, "TMPDIR=/tmp", "GOTOOLCHAIN=local", "PWD=" + dir,
	}
	at := map[string]int{}
	for i, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		at[k] = i
	}
	for _, kv := range c.Env {
		k, _, _ := strings.Cut(kv, "=")
		if i, ok := at[k]; ok {
			env[i] = kv
			continue
		}
		at[k] = len(env)
		env = append(env, kv)
	}
	return env
}
