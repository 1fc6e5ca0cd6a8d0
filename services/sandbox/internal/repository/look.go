package repository

import (
	"fmt"
	"regexp"
	"strings"
)

// A status compares files with a repository's contents. Git runs the filters that the repository's
// configuration names for that. The acting user may have mounts that the author of that configuration may
// not see. So Git uses a folder of ours, with links to the repository's parts and a configuration that
// names no program.

// ConfigurationCommand returns the command that prints the input of ParseConfiguration.
func ConfigurationCommand(dir string) []string {
	return git("config", "--file", dir+"/.git/config", "--no-includes", "--null", "--list")
}

// harmless are the settings that a status needs; none of them runs a program.
var harmless = regexp.MustCompile(`^(core\.(filemode|symlinks|ignorecase|autocrlf|eol|trustctime|checkstat|excludesfile|sparsecheckout|sparsecheckoutcone)|` +
	`status\.(renames|renamelimit)|branch\.(?s:.+)\.(remote|merge)|remote\.(?s:.+)\.fetch)$`)

// maxSettings is how many settings of a repository count.
const maxSettings = 1000

// Configuration is the used part of a repository's configuration.
type Configuration struct {
	environment []string
	format      string // of its objects
}

// ParseConfiguration decodes the output of ConfigurationCommand: a key, a line feed and the value, followed
// by a zero byte.
func ParseConfiguration(out []byte) Configuration {
	c := Configuration{format: "sha1"}
	n := 0
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, value, set := strings.Cut(entry, "\n")
		switch {
		case key == "extensions.objectformat" && value == "sha256":
			c.format = value
		case !set || n == maxSettings || !harmless.MatchString(key):
		default:
			c.environment = append(c.environment, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, value))
			n++
		}
	}
	c.environment = append(c.environment, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
	return c
}

// Environment returns the variables that StatusCommand needs besides Git's.
func (c Configuration) Environment() []string { return c.environment }

// look makes our folder and calls Git. Its arguments are the repository's directory, the format of its
// objects, and Git's arguments.
const look = `set -e
work=$1 from=$1/.git format=$2; shift 2
own=$(mktemp -d); trap 'rm -rf "$own"' EXIT
cat "$from/HEAD" > "$own/HEAD"
for part in refs packed-refs info shallow; do test ! -e "$from/$part" || ln -s "$from/$part" "$own/"; done
for part in "$from"/sharedindex.*; do test ! -e "$part" || ln -s "$part" "$own/"; done
printf '[core]\nrepositoryformatversion = 1\nbare = false\n[extensions]\nobjectformat = %s\n' "$format" > "$own/config"
export GIT_DIR="$own" GIT_WORK_TREE="$work" GIT_INDEX_FILE="$from/index" GIT_OBJECT_DIRECTORY="$from/objects"
"$@"`

// StatusCommand returns the command that prints the input of ParseStatus.
func StatusCommand(dir string, c Configuration) []string {
	return append([]string{"sh", "-c", look, "sh", dir, c.format}, git("--no-optional-locks", "-C", dir,
		"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--ignore-submodules=all")...)
}
