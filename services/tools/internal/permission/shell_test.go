package permission

import "testing"

// TestNoFormOfACommandPassesARule tries what hides a command in the shell: none is allowed by
// rules for other commands, and none passes the rule that denies it.
func TestNoFormOfACommandPassesARule(t *testing.T) {
	others := profile(t, Rules{Allow: []string{"Bash(git *)", "Bash(ls *)", "Bash(true)", "Bash(echo *)", "Bash(cat *)", "Bash(for *)", "Bash(time *)"}})
	noRm := profile(t, Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(rm *)"}})
	for _, text := range []string{
		"find . -name x -exec rm {} ;", "find . -name x -exec rm {} \\;", "find . -execdir rm {} +", "find . -ok rm {} \\;", "find . -delete -exec /bin/rm x \\;",
		"xargs rm < list", "ls | xargs -n 1 rm", "ls | xargs -I{} rm {}", "ls | xargs -I {} sh -c 'rm {}'", "parallel rm ::: a b", "ls | parallel rm",
		"env rm x", "env -u A rm x", "env A=1 B=2 rm x", "env -S'rm x'", "env --split-string='rm x'", "/usr/bin/env rm x",
		"sudo rm x", "sudo -u bob rm x", "sudo -- rm x", "doas rm x", "su -c 'rm x'", "su bob -c 'rm x'", "runuser -u bob -- rm x", "sg group 'rm x'",
		"ssh host rm x", "ssh -p 22 host 'rm x'", "ssh host -- rm x", "docker exec c rm x", "kubectl exec p -- rm x",
		"cat <<E\n$(rm x)\nE", "cat <<E\n`rm x`\nE", "cat <<-E\n\t$(rm x)\n\tE", "cat <<<$(rm x)", "bash <<'E'\nrm x\nE", "sh <<E\nrm x\nE", "bash <<< 'rm x'", "echo 'rm x' | sh", "echo rm x | bash -s", "cat s | bash",
		"cat <(rm x)", "echo >(rm x)", "bash <(echo rm x)", "source <(echo rm x)", ". <(echo rm x)",
		"bash -c 'rm x'", "bash -lc 'rm x'", "bash -c \"rm x\"", "sh -xc 'ls; rm x'", "bash -c 'bash -c \"rm x\"'", "busybox sh -c 'rm x'", "busybox rm x", "bash -O extglob -c 'rm x'", "bash --norc -c 'rm x'",
		"git -c core.pager='rm x' log; rm x", "alias ls=rm; ls x", "alias g='rm x'\ng", "unalias ls; rm x",
		"rm${IFS}x", "rm$IFS-rf", "r''m x", "r\\m x", "\"rm\" x", "$'rm' x", "$'\\x72m' x", "$\"rm\" x", "${X:-rm} x", "${X-rm} x", "$(echo rm) x", "`echo rm` x", "r{m,} x", "{rm,x}", "r? x", "/bin/r? x", "/bin/[r]m x", "~/rm x", "*",
		"ls\u00a0; rm x", "ls \u0085 && rm x", "ls\nrm x", "ls\r\nrm x", "ls\x0brm x; rm x", "ls \\\n; rm x", "ls\\\nx; rm x", "ls &\nrm x", "ls & rm x", "ls || rm x", "ls |& rm x", "(rm x)", "{ rm x; }", "((1)); rm x", "[[ x ]] && rm x",
		"coproc rm x", "coproc N { rm x; }", "time rm x", "time -p rm x", "! rm x", "! ! rm x", "if rm x; then ls; fi", "while rm x; do ls; done", "until rm x; do ls; done", "for i in $(rm x); do ls; done", "for ((i=0;i<1;i++)); do rm x; done", "select i in a; do rm x; done",
		"case x in x) rm x;; esac", "case $(rm x) in *) ls;; esac", "case x in $(rm x)) ls;; esac", "case x in a|x) ls;& *) rm x;; esac",
		"eval rm x", "eval 'r''m x'", "eval \"$X\"", "eval $(echo rm x)", "eval 'eval \"rm x\"'", "trap 'rm x' EXIT", "trap \"rm x\" 0", "exec rm x", "exec -a ls rm x", "command rm x", "command -p rm x", "builtin eval 'rm x'", "nohup rm x &", "setsid rm x", "timeout 5 rm x", "timeout --signal=KILL 5 rm x", "nice -n 5 rm x", "ionice -c 3 rm x", "stdbuf -o0 rm x", "chroot / rm x", "unshare -r rm x", "flock /tmp/l rm x", "watch rm x", "strace rm x", "setpriv --no-new-privs rm x", "script -c 'rm x'", "taskset 1 rm x", "chrt 1 rm x", "linux64 rm x", "prlimit rm x", "nsenter rm x",
		"f() { rm x; }; f", "function f { rm x; }; f", "PATH=. rm x", "X=$(rm x)", "export X=$(rm x)", "declare X=$(rm x)", "local X=`rm x`", "readonly X=$(rm x)", "let x=$(rm x)", "echo ${x:-$(rm x)}", "echo ${x:=$(rm x)}", "echo $(( $(rm x) ))", "echo ${a[$(rm x)]}", "echo \"${x:+$(rm x)}\"", "echo x > $(rm x)", "echo x 2>&$(rm x)", "echo $(<$(rm x))", "ls # x\nrm x", "ls; #\\\nrm x",
		"awk 'BEGIN { system(\"rm x\") }'; rm x", "perl -e 'x'; rm x", "python3 -c x; rm x", "hash -p /bin/rm ls; ls x", "enable -f x rm; rm x", "printf -v PATH .; rm x", "mapfile -C 'rm x' -c 1 A", "set -- rm x; \"$@\"", "read X; $X", "\n\n\trm x", ";rm x",
	} {
		if d := others.Decide(Request{Tool: "Bash", Command: text}); d.Kind == Allow {
			t.Errorf("%q is allowed by %s", text, d.Rule)
		}
		if d := noRm.Decide(Request{Tool: "Bash", Command: text}); d.Kind != Deny {
			t.Errorf("%q is not denied: %s", text, d.Rule)
		}
	}
}

// TestCommandsThatOnlyLookLikeThatStayAllowed keeps the rules from denying what is harmless.
func TestCommandsThatOnlyLookLikeThatStayAllowed(t *testing.T) {
	noRm := profile(t, Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(rm *)"}})
	for _, text := range []string{
		"bash build.sh rm", "bash <<'E'\nmake\nE", "sh -c 'make; ls'", "bash -o pipefail -c 'ls | wc'", "echo rm x", "git rm x", "grep -r rm .", "ssh host ls", "ssh -p 22 host 'cd x && make'",
		"docker run --rm image ls", "alias", "hash -r", "find . -name rm", "env | grep x", "cat > x <<'E'\nrm x\nE", "source venv/bin/activate && make", "ls\u2003rm x", "parallel make ::: a", "mapfile -t A < x",
		"case rm in rm) ls;; esac", "kubectl get pods", "watch -n 1 ls", "bash -x script", "sudo bash script", "time make", "! make",
	} {
		if d := noRm.Decide(Request{Tool: "Bash", Command: text}); d.Kind != Allow {
			t.Errorf("%q is denied: %s", text, d.Rule)
		}
	}
}

// TestNoOptionHidesTheCommandOfAnotherProgram has ways of shells, built-in commands and wrappers to run a denied command.
func TestNoOptionHidesTheCommandOfAnotherProgram(t *testing.T) {
	deny := profile(t, Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(git push *)"}})
	for _, text := range []string{
		// Options between -c and the script, and files that are the standard input.
		"bash -c -e 'git push x'", "bash -c -- 'git push x'", "bash -co pipefail 'git push x'", "bash -oc pipefail 'git push x'", "bash -c +x 'git push x'", "rbash -c 'git push x'", "busybox ash -c 'git push x'",
		"bash /dev/fd/0 <<< 'git push x'", "bash /proc/self/fd/0 <<< 'git push x'", "bash --rcfile x <<< 'git push x'", "bash +o posix <<< 'git push x'",
		". /dev/stdin <<< 'git push x'", "echo x | source /dev/stdin", ". /dev/fd/3 3<<< 'git push x'", "source -- /dev/stdin <<< 'git push x'", "source $X", ". \"$X/0\" <<< 'git push x'", "source \"/dev/$X\"",
		"eval -- 'git push x'", "builtin eval -- git push x", "command eval -- 'git push x'", "trap -- 'git push x' EXIT", "time -- git push x",
		"mapfile -tC 'git push' -c1 A", "readarray -c1 -tC'git push' A", "compgen -C 'git push'", "compgen -W '$(git push x)'", "jobs -x git push x", "compgen $X",
		// Options of wrappers and their values.
		"env -u X -S 'git push x'", "env --chdir . --split-string='git push x'", "env /=1 git push x", "env -C . git push x", "env - A=1 git push x", "env -a x git push x",
		"timeout .5 git push x", "timeout +5 git push x", "timeout 1e1 git push x", "timeout inf git push", "timeout -s KILL .5 git push", "timeout -k .5 .5 git push", "timeout \"$T\" git push", "timeout $T git push x",
		"taskset 0x1 git push x", "taskset -c 0,1 git push x", "chrt -o 0 git push", "chrt --other git push", "setarch -R git push x", "setarch x86_64 -R git push x", "chroot --userspec root / git push", "choom -n 0 -- git push x", "ssh-agent git push", "perf stat -e x git push",
		"flock /l -c 'git push x'", "flock -w .5 /l git push x", "flock -n /l --command 'git push x'", "script -qc'git push x' /dev/null", "script --command='git push x'", "su -c'git push x'", "su x --command='git push x'", "runuser x -c'git push x'",
		"su -c \"$X\"", "script -qc \"$X\" f", "sg x \"$X\"", "flock /l -c \"$X\"", "runuser x -c \"$X\"", "watch \"$X\"", "su -c$X",
		"xargs -tI {} git push {}", "xargs -rn 1 git push", "xargs --max-args 1 git push", "xargs git -C", "git -C $X status", "git -C * status",
		"find . $X git push x \\;", "find . -$X git push x \\;", "find push -exec git {} x \\;", "find $X -exec git {} x \\;",
		"/usr/lib/git-core/git-push x", "git-push x", "\"$X/git\" push x", "\"$X/env\" git push x", "timeout 5 \"$X/git\" push", "~/bin/git push x", "$X/git push x", "\"$X\"/* push", "\"$X/\" push", "\"$X/g$Y\" push",
		// Texts that the shell evaluates.
		"let 'a[$(git push x)]=1'", "let \"a[\\$(git push x)]=1\"", "[[ 'a[$(git push x)]' -eq 1 ]]", "test -v 'a[`git push x`]'", "[ $X 'a[$(git push x)]' ]", "read 'a[$(git push x)]' <<< x", "declare 'a[$(git push x)]=1'", "declare -i x; x='a[$(git push x)]'",
		"x='a[$(git push x)]'; echo $((x))", "x='a[$(git push x)]'; ((x))", "x='a[$(git push x)]'; echo ${b[x]}", "x='a[$(git push x)]'; b[x]=1", "a['$(git push x)']=1", "x='$(git push x)'; echo ${x@P}", "PS4='$(git push x)'; set -x; :", "BASH_ENV=x bash -c :", "PROMPT_COMMAND='git push' bash -i",
		// The same texts in several parts, and as the shell decodes them.
		"[ -v 'a[$''(git push x)]' ]", "[ -v \"a[\\$\"'(git push x)]' ]", "[ -v $'a[\\x24(git push x)]' ]", "[ -v $'a[\\044\\50git push x)]' ]", "printf -v $'a\\u005b`git push x`]' x", "read \"a[\"'$(git push x)]' <<< x", "read a['$(git push x)'] <<< 1", "wait -n -p 'a[$''(git push x)]'",
		"declare 'a[$''(git push x)]=1'", "let 'a[$''(git push x)]'", "x='a[$''(git push x)]'; echo $((x))", "x=\"a[\"; x+='$(git push x)]'; echo $((x))", "x='a['; y='$(git push x)]'; echo $(($x$y))", "read x <<< 'a[$''(git push x)]'; [[ x -eq 1 ]]", "read x <<'E'\na[$(git push x)]\nE\necho $((x))", "a=(['$(git push x)']=1)", "echo {a['$(git push x)']}>&1",
		// Built-in commands behind `builtin` and `command`.
		"builtin test -v 'a[$(git push x)]'", "command read 'a[$(git push x)]' <<< x", "builtin let 'a[$(git push x)]'", "\\builtin [ -v 'a[$(git push x)]' ]", "builtin declare 'a[$(git push x)]=1'", "command hash -p ./git ls; ls", "builtin mapfile -C 'git push' -c 1 a", "command compgen -C 'git push'", "builtin jobs -x git push", "builtin source <(echo git push x)", "command alias ls='git push'", "builtin enable -n ls",
		// Variables from which the shell runs commands, and what the names of programs stand for.
		"read PS4 <<< '$(git push x)'; set -x; :", "read -rp x PS4", "printf -v PS4 '$(git push x)'; set -x; :", "for PS4 in '$(git push x)'; do set -x; :; done", "mapfile -t PS4 <<< x", "builtin export BASH_ENV=x; bash -c :", "env BASH_ENV=x bash -c :", "declare -n r=PS4; r='$(git push x)'", "BASH_CMDS[ls]=/bin/git; ls push", "BASH_CMDS=([ls]=/bin/git); ls push", "read 'BASH_CMDS[ls]' <<< /bin/git; ls push", "declare 'BASH_ALIASES[ls]=git push'",
		// Other paths of the standard input.
		"bash //dev/stdin <<< 'git push x'", ". ../../dev/stdin <<< 'git push x'", "bash /tmp/../dev/fd/0 <<< 'git push x'", "cd /dev; . ./stdin <<< 'git push x'", "cd /dev/fd; bash 0 <<< 'git push x'", "cd /dev; bash fd/0 <<< 'git push x'",
	} {
		if d := deny.Decide(Request{Tool: bash, Command: text}); d.Kind != Deny {
			t.Errorf("%q is not denied: %s", text, d.Rule)
		}
	}
}

// TestABuiltInCommandThatSetsAVariableNeedsTheRuleForAll keeps rules for built-in commands from allowing other programs.
func TestABuiltInCommandThatSetsAVariableNeedsTheRuleForAll(t *testing.T) {
	var rules []string
	for _, name := range []string{"read", "mapfile", "readarray", "getopts", "unset", "wait", "compgen", "jobs", "hash", "enable", "test", "[", "ls", "sleep"} {
		rules = append(rules, "Bash("+name+" *)")
	}
	p := profile(t, Rules{Allow: rules})
	for _, text := range []string{
		"read PATH <<< .; ls", "read -r a PATH <<< x", "read 'a[$(rm x)]' <<< x", "read $x", "read -a PATH <<< .", "read -aPATH <<< .; ls", "read -raPATH <<< .; ls", "mapfile -t PATH <<< .", "readarray PATH <<< .", "mapfile -tC ./x -c1 a <<< x", "mapfile $x ./x a <<< x",
		"getopts a PATH -a", "unset PATH; ls", "unset 'a[$(rm x)]'", "unset $x", "wait -n -p PATH", "sleep 0 & wait -p 'a[$(rm x)]' $!", "compgen -C ./x", "compgen -W '$(rm x)'", "compgen $x ./x", "jobs -x ./x", "jobs $x ./x", "hash $x ./x ls", "enable $x", "test ! -v 'a[$(rm x)]'",
	} {
		if d := p.Decide(Request{Tool: bash, Command: text}); d.Kind == Allow {
			t.Errorf("%q is allowed by %s", text, d.Rule)
		}
	}
	for _, text := range []string{"read -r line <<< x", "read -ra words <<< x", "read -rawords <<< x", "read -N1 c <<< x", "read -rd: f <<< x", "mapfile -t lines <<< x", "unset foo", "sleep 1 & wait $!", "wait", "wait -n", "wait %1", "wait 7 name", "jobs -l", "hash -r", "[ -f x ] && ls"} {
		if d := p.Decide(Request{Tool: bash, Command: text}); d.Kind != Allow {
			t.Errorf("%q is not allowed: %s", text, d.Rule)
		}
	}
}

// TestWhatNoRuleMeansStaysAllowed has everyday commands with computed words, which no rule that restricts can mean.
func TestWhatNoRuleMeansStaysAllowed(t *testing.T) {
	p := profile(t, Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(git push *)", "Bash(rm -rf *)", "Bash(npm publish *)", "Bash(sudo *)"}})
	for _, text := range []string{
		"\"$PWD/bin/tool\" --x", "\"$(go env GOPATH)/bin/golangci-lint\" run", "~/bin/tool \"$x\"", "exec \"$ROOT/server\" -p 1", "timeout 5 \"$PWD/x.sh\"",
		"find . -name x -exec rm {} \\;", "find /tmp /x -type f -exec rm {} +", "find -name x -execdir rm {} \\;", "find \"$DIR\" -type f -name '*.ts'", "find $DIR -type f", "find . -exec git log {} \\;",
		"timeout \"$T\" npm test", "timeout -k 5 60s go test ./...", "flock -n /tmp/l make", "taskset -c 0 ./x", "watch -n \"$i\" kubectl get pods", "env FOO=\"$x\" BAR=1 make", "nice -n 10 make", "xargs -0tI {} cp {} x", "xargs -i{} cp {} x",
		"for pkg in a b; do npm --prefix \"$pkg\" test; done", "npm -w a run build", "git -C \"$REPO\" status", "kubectl -n \"$NS\" get pods", "docker rm $(docker ps -aq)", "docker logs $c", "docker exec $c ls", "kubectl exec $p -- ls /",
		"source ~/.bashrc", "source \"$HOME/.cargo/env\"", ". \"$NVM_DIR/nvm.sh\"", "source .venv/bin/activate", "bash -n \"$f\"", "bash \"$f\" a", "bash -eo pipefail -c 'ls | wc'", "su postgres -c 'psql -l'", "script -qc 'make' /dev/null",
		"awk '{a[$(NF-1)]++}' f", "declare -A m; m[a]=1; echo ${m[a]}", "ENV=test npm test", "trap 'ls' EXIT", "trap - EXIT", "eval -- ls", "git-lfs pull", "time -p make",
		"echo $'\\033[31m'\"$x\"", "IFS=$'\\n'; echo $x", "awk '{print $(NF)}' \"$f\"", "git commit -m 'use `x` in a[i]' && echo $?", "grep PS4 ~/.bashrc", "printf 'PROMPT_COMMAND=x\\n' >> f", "command -v hash", "command -v git && echo $((1+1))", "cat > s <<'E'\necho $(ls) ${a[1]}\nE\necho $?", "bash scripts/7 < f", "echo \"${a[0]}\" '$(x)'", "[ -n \"$x\" ] && echo 'a[i]' '`y`'", "sed 's/[a-z]*$(x)/y/' \"$f\"",
	} {
		if d := p.Decide(Request{Tool: bash, Command: text}); d.Kind != Allow {
			t.Errorf("%q is not allowed: %s", text, d.Rule)
		}
	}
}
