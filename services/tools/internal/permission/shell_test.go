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
