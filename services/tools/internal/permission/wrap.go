package permission

import (
	"path"
	"slices"
	"strings"
)

// wrapper is a program that runs the command behind its own options and operands.
type wrapper struct {
	operands      int    // how many of its own
	spare         bool   // it may have that many, or none
	flags, values string // each option between spaces; another one may have a value in the next word, or not
	joins         string // options that have a value only in the same word
}

// wrappers run another command. Words such as `A=1` and numbers before it are their own.
var wrappers = map[string]wrapper{
	"--":      {}, // behind the reserved word time
	"builtin": {}, "busybox": {}, "toybox": {}, "command": {flags: " -p -v -V "}, "exec": {flags: " -c -l ", values: " -a "}, "nohup": {}, "time": {flags: " -p -v -a ", values: " -f -o --format --output "},
	"env": {
		flags:  " - -i -0 -v --ignore-environment --null --debug --list-signal-handling ",
		values: " -u -C -S -a --unset --chdir --split-string --argv0 ",
	},
	"sudo":   {flags: " -A -b -E -e -H -i -K -k -l -n -P -S -s -v ", values: " -C -D -g -h -p -R -r -t -T -U -u --user --group --host --prompt --chdir --chroot "},
	"doas":   {flags: " -L -n -s ", values: " -a -C -u "},
	"pkexec": {flags: " --disable-internal-agent --keep-cwd ", values: " --user "},
	"gosu":   {operands: 1}, "su-exec": {operands: 1}, "runuser": {values: " -u -g -G --user --group --supp-group "},
	"timeout": {operands: 1, flags: " -f -p -v --foreground --preserve-status --verbose ", values: " -k -s --kill-after --signal "},
	"nice":    {values: " -n --adjustment "}, "ionice": {flags: " -t --ignore ", values: " -c -n -p -P -u --class --classdata "},
	"chrt":    {operands: 1, spare: true, flags: " -a -b -f -i -o -r -R -d -v --batch --fifo --idle --other --rr --deadline ", values: " -T -P -D "},
	"taskset": {operands: 1, spare: true, flags: " -a -p --all-tasks ", values: " -c --cpu-list "},
	"setarch": {operands: 1, spare: true}, "linux32": {}, "linux64": {}, "choom": {values: " -n -p --adjust "}, "uclampset": {values: " -m -M "}, "cpulimit": {values: " -l -e -p -P "}, "numactl": {},
	"setsid": {flags: " -c -f -w --ctty --fork --wait "}, "stdbuf": {values: " -i -o -e --input --output --error "}, "prlimit": {}, "setpriv": {}, "unshare": {}, "nsenter": {}, "systemd-run": {},
	"chroot": {operands: 1, values: " --userspec --groups "}, "fakeroot": {}, "eatmydata": {}, "firejail": {}, "tini": {}, "dumb-init": {},
	"flock":  {operands: 1, flags: " -e -F -n -o -s -u -x --nonblock --shared --exclusive --unlock --close --no-fork ", values: " -w -E --timeout --wait --conflict-exit-code "},
	"strace": {values: " -e -E -o -p -s -u "}, "ltrace": {values: " -e -o -p -s -u "}, "valgrind": {}, "perf": {operands: 1}, "unbuffer": {}, "xvfb-run": {}, "faketime": {operands: 1},
	"ssh-agent": {flags: " -c -s -k -d -D ", values: " -a -E -O -P -t "}, "dbus-run-session": {}, "caffeinate": {values: " -t -w "}, "watch": {flags: " -b -c -C -d -e -g -p -r -t -w -x ", values: " -n -q "},
	"parallel": {values: " -j -a -n -N -L -S --jobs --arg-file --max-args --colsep --delay --timeout --joblog "},
	"xargs": {
		flags:  " -0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty --replace --max-lines --eof ",
		joins:  " -i -l -e ",
		values: " -I -d -n -P -L -s -E -a --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var ",
	},
}

// words says how many words an option takes, if the next word is its value and if it is not. Short options may stand
// together, and the value of the last of them may stand in the same word.
func (w *wrapper) words(option string) (least, most int) {
	listed := func(in, name string) bool { return strings.Contains(in, " "+name+" ") }
	switch {
	case listed(w.flags, option):
		return 1, 1
	case listed(w.values, option):
		return 2, 2
	case strings.HasPrefix(option, "--"):
		if strings.Contains(option, "=") {
			return 1, 1
		}
		return 1, 2
	}
	for i := 1; i < len(option); i++ {
		switch name := "-" + option[i:i+1]; {
		case listed(w.joins, name):
			return 1, 1
		case listed(w.flags, name):
		case !listed(w.values, name):
			return 1, 2
		case i == len(option)-1:
			return 2, 2
		default:
			return 1, 1
		}
	}
	return 1, 1
}

// maxCandidates bounds the possible starts of a wrapper's command.
const maxCandidates = 4

// wrapped returns the possible starts of a wrapper's command: several, if options of the wrapper may have a value in the
// next word, or not.
func (s *script) wrapped(words []word, w *wrapper) []int {
	name := path.Base(words[0].text)
	if name == "find" {
		return s.executed(words)
	}
	var all []int
	type place struct{ at, operands int }
	seen, ahead := map[place]bool{}, []place{{1, w.operands}}
	for len(ahead) > 0 {
		p := ahead[0]
		if ahead = ahead[1:]; seen[p] || p.at >= len(words) {
			continue
		}
		seen[p] = true
		here := words[p.at]
		switch {
		case here.known && len(here.text) > 1 && here.text[0] == '-' && here.text != "--", here.known && here.text == "-":
			if name == "env" && splits(here.text) {
				s.hide("it has env take words apart")
				return nil
			}
			least, most := w.words(here.text)
			ahead = append(ahead, place{p.at + least, p.operands}, place{p.at + most, p.operands})
			continue
		case here.known && here.text == "--", assigns(here) && p.operands == 0, here.known && isNumber(here.text) && p.operands == 0:
			ahead = append(ahead, place{p.at + 1, p.operands})
			if !strings.HasPrefix(here.text, "/") {
				continue
			}
		case p.operands > 0 && (here.known || !here.shape.several()):
			ahead = append(ahead, place{p.at + 1, p.operands - 1})
			if !w.spare || here.known && isNumber(here.text) {
				continue
			}
		}
		if slices.Contains(all, p.at) {
			continue
		}
		if len(all) == maxCandidates {
			s.hide("the program that %s runs is unknown", words[0].text)
			break
		}
		all = append(all, p.at)
	}
	slices.Sort(all)
	return all
}

// assigns reports whether a word sets a variable, as env takes it.
func assigns(w word) bool {
	if !w.known {
		return len(w.shape.pieces) > 0 && w.shape.pieces[0].kind == fixed && strings.Contains(w.shape.pieces[0].text, "=") && !w.shape.several()
	}
	return strings.Contains(w.text, "=")
}

// splits reports whether an option of env splits one word into several.
func splits(option string) bool {
	return strings.HasPrefix(option, "--s") || !strings.HasPrefix(option, "--") && strings.Contains(option, "S")
}

// executed returns the starts of the commands that find executes.
func (s *script) executed(words []word) []int {
	var all []int
	for i, w := range words[:len(words)-1] {
		switch w.text {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			if next := words[i+1]; i == 0 || w.known || !next.known || next.text == "" || strings.Contains("-(!;", next.text[:1]) {
				continue
			}
			if may, _ := w.shape.option(); !may {
				continue
			}
		}
		if len(all) == maxCandidates {
			s.hide("find executes too many commands")
			return all
		}
		all = append(all, i+1)
	}
	return all
}

// isNumber reports whether a word is a number, or a duration such as `5s`.
func isNumber(w string) bool {
	return w != "" && w[0] >= '0' && w[0] <= '9' && strings.Trim(w, "0123456789.smhd") == ""
}

// computedScript is the doubt about a script that is not literal.
const computedScript = "it runs a computed script"

// shellScripts finds the script of a shell's -c: the first word that is no option. All options come before it.
func (s *script) shellScripts(words []word) []string {
	i, ok := shellOperand(words)
	switch {
	case !ok || i >= len(words):
		return nil
	case !words[i].known:
		s.hide(computedScript)
		return nil
	}
	return []string{words[i].text}
}

// shellOperand returns the index of a shell's first word that is no option, and whether it is a script, as -c says.
func shellOperand(words []word) (at int, script bool) {
	i := 1
	for ; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.known || len(w.text) < 2 || w.text[0] != '-' && w.text[0] != '+':
			return i, script
		case w.text == "--":
			return i + 1, script
		case w.text == "--rcfile" || w.text == "--init-file" || w.text == "--command" || w.text == "--init-command":
			if script = script || w.text == "--command"; !script {
				i++
			}
			continue
		case strings.HasPrefix(w.text, "--"):
			continue
		}
		script = script || w.text[0] == '-' && strings.Contains(w.text, "c")
		i += strings.Count(w.text, "o") + strings.Count(w.text, "O") // each has a name in a further word
	}
	return i, script
}
