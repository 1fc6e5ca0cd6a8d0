package permission

import (
	"strings"
	"testing"
)

// TestAWordThatIsNotLiteralMayBeAnyWordOfARule spells the words of a denied command in ways that only the shell resolves,
// and puts options before them.
func TestAWordThatIsNotLiteralMayBeAnyWordOfARule(t *testing.T) {
	for _, c := range []struct {
		rule     string
		commands []string
	}{
		{"Bash(git push *)", []string{
			// Quotes, escapes and expansions.
			"git $'push'", "git $'\\160ush' x", `git $"push"`, `git "push" x`, `git 'pu'sh`, `git pu\sh`, "git pu\\\nsh x", `git "pu"'sh'`, `g"it" push`,
			"git {push,x}", "git {--no-pager,push}", "git p{us,}h", "git {,push}", "git pus{h..i}", `git {"push",x}`, "git {push,$x}",
			"git ${X:-push} x", "git ${X}", `git "$X" origin`, "git $X", "git $X push", "git ${X}push", "git pu${X}sh", `git pu"$X"`, `git "${X[0]}"`, `git "$@"`, "git ${!X}", "git ${X#a}", "git $1",
			"git $(echo push) x", "git `echo push`", `git "$(echo push)" x`, "git pu$(echo sh)", "git $((1))push", "git $((x)) push",
			"git p?sh x", "git p*", "git [p]ush x", "git [[:alpha:]]ush x", "git * x", "git @(push) x", "git ~ x", "git ~+ x", "git ~x",
			"set -- push; git \"$@\"", "for c in push; do git $c; done", "read c; git $c", "f() { git \"$@\"; }; f push", "X=push; git $X", "X=push git $X",
			"git $X <(echo x)", "git *(push) x", "xargs git", "$CMD x", "./pu?h x", "git 'push", "eval 'git push'", "find . -exec git push \\;", "sudo git -c a=b push", "git --no-pager push",
			// Options before the subcommand.
			"git -C . push x", "git -c a=b push x", "git --no-pager push", "git -p push", "git --git-dir=x push", "git --git-dir x push", "git --git-dir=$X push", "git -C $X push", "git -C \"$X\" push",
			"git --unknown push", "git --unknown x push", "git -C x -c a=b --no-pager push", "git $X . push", "git -c $X p", "git -c alias.p=push p", "git -c Alias.p='!x' p", "git --config-env alias.p=X p",
			"/usr/bin/git -C . push", "A=1 git -C . push", "env A=1 git -C . push", "sudo -u x git -C . push", "timeout 5 git $X", "nice git p?sh", "command git {push,x}", "builtin command git -C . push",
			"exec git -C . push", "bash -c 'git -C . push'", "bash -c 'git \"$1\"' x push", "eval 'git -C . push'", "bash <<'E'\ngit -C . push\nE", "ssh host git -C . push", "ssh host 'git $X'", `ssh host "git $X"`, `docker exec c sh -c "git $X"`,
			"if git -C . push; then ls; fi", "echo $(git -C . push)", "cat <<E\n$(git -C . push)\nE", "coproc git -C . push", "watch git -C . push",
			// Words that a program adds.
			"echo push | xargs git", "echo push | xargs -n 1 git -C .", "echo push | xargs -I{} git {} x", "echo push | xargs -I X git X x", "echo push | xargs --replace=X git X", "find push -exec git {} \\;", "parallel git ::: push", "parallel git {} ::: push", "ls | xargs -I{} sh -c 'git {}'",
		}},
		{"Bash(git push --force *)", []string{"git -C . push --force", "git push -v --force", "git push -o x --force", "git push $X --force", `git push "$X"`, "git $X", "git push {--force,x}"}},
		{"Bash(git * --force)", []string{"git push $X", "git -C . push --force", "git push \"$X\""}},
		{"Bash(make deploy)", []string{"make $X", "make de?loy", "make -C . deploy", "make {deploy,}", "make -j 4 deploy"}},
		{"Bash(rm -rf *)", []string{"rm $X", `rm "$X"`, "rm {-rf,x}", "rm *", "rm $'-rf' x", "rm -r{f,} x", "rm -\"$X\" x", "rm ?rf"}},
		{"Bash(docker run *)", []string{"docker -D run x", "docker --context x run y", "docker -H=x run", "docker $X", "docker -l debug run x", "docker --tls run x"}},
		{"Bash(docker compose up *)", []string{"docker compose -f x up", "docker compose --profile x up -d", "docker -D compose --ansi never up"}},
		{"Bash(kubectl delete *)", []string{"kubectl -n x delete pod y", "kubectl --namespace=x delete y", "kubectl --context x -n y delete z", "kubectl -nx delete y", "kubectl $X"}},
		{"Bash(kubectl delete ns *)", []string{"kubectl delete -n x ns y", "kubectl -n x delete ns y"}},
		{"Bash(systemctl stop *)", []string{"systemctl --user stop x", "systemctl -H host stop x", "systemctl --no-block stop x", "systemctl -q $X"}},
		{"Bash(npm run deploy *)", []string{"npm --prefix x run deploy", "npm run --silent deploy", "npm run $X"}},
		{"Bash(gh pr merge *)", []string{"gh -R x pr merge 1", "gh pr -R x merge 1", "gh pr --repo=x merge"}},
		{"Bash(terraform apply *)", []string{"terraform -chdir=x apply"}},
		{"Bash(apt-get install *)", []string{"apt-get -y install x", "apt-get -o a=b install x"}},
	} {
		allow := []string{"Bash"}
		if program, _, _ := strings.Cut(strings.TrimPrefix(c.rule, "Bash("), " "); program == "git" {
			allow = []string{"Bash", "Bash(git *)"}
		}
		deny, ask := profile(t, Rules{Allow: allow, Deny: []string{c.rule}}), profile(t, Rules{Allow: allow, Ask: []string{c.rule}})
		interrupt := profile(t, Rules{Allow: allow, Interrupt: []string{c.rule}})
		for _, text := range c.commands {
			if d := deny.Decide(Request{Tool: bash, Command: text}); d.Kind != Deny {
				t.Errorf("deny %s: %q is not denied: %s", c.rule, text, d.Rule)
			}
			if d := ask.Decide(Request{Tool: bash, Command: text}); d.Kind != Ask {
				t.Errorf("ask %s: %q is not asked about: %s", c.rule, text, d.Rule)
			}
			if d := interrupt.Decide(Request{Tool: bash, Command: text}); d.Kind != Deny {
				t.Errorf("interrupt %s: %q is not denied: %s", c.rule, text, d.Rule)
			}
		}
	}
}

// TestACommandThatARuleCannotMeanStaysAllowed has words that are not literal, and options, in commands that no value of them
// turns into the denied one.
func TestACommandThatARuleCannotMeanStaysAllowed(t *testing.T) {
	for rule, commands := range map[string][]string{
		"Bash(git push *)": {
			"[ -f x ] && cat x", "[ -f \"$x\" ] && cat \"$x\"", "if [ \"$a\" = b ]; then ls; fi", "while [ $# -gt 0 ]; do shift; done", "[[ -f x ]] && cat x", "/usr/bin/[ -f x ]", "test -f \"$x\"",
			"git -C . status", "git -C push status", "git -c push.default=x log", "git -c a=b --no-pager log", "git --git-dir push log", "git commit -m \"$msg\"", "git commit -m $msg", "git add *.go", "git add src/*.go push", "git log $(git rev-parse HEAD)",
			"git reset HEAD~1", "git show HEAD@{1}", "git diff <(ls) <(ls)", "git checkout -- $files", "git log -- push", "git stash push", "git stash $X", "git {log,push}", "git {diff,log} $X", "git fetch \"$remote\"", "git *.go", "git a?c", "git log push",
			"git pushx", "git pu", "gitk $X", "echo git push", "echo $X", "ls *", "ls ~", "cat {a,b}", "grep -r \"$x\" .", "rm -rf \"$tmp\"", "make $X", "docker run $image", "cd \"$(dirname \"$0\")\" && ls", "ls | xargs grep push", "ls | xargs -I{} cp {} x", "find . -name '*.go' -exec grep x {} +", "find . -exec sh -c 'echo \"$1\"' _ {} \\;",
			"for f in *.go; do wc -l \"$f\"; done", "ssh \"$host\" ls", "docker exec $c ls", "docker logs $c", "env FOO=\"$x\" make", "FOO=$x make", "timeout 5 git log", "sudo git log", "kubectl get pod \"$p\"", "echo $((1+2))", "printf '%s\\n' \"$x\"", "git log --format='%H {a,b}'", "git log {", "git tag v1.{0,1}",
		},
		"Bash(rm -rf *)":       {"rm *.o", "rm a?", "rm ./$x", "rm -- $x", "rm x $y", "rm /tmp/*", "rm -f $x", "rm {a,b}", "rm ~/x", "rm $'x'", "rmdir $x"},
		"Bash(make deploy)":    {"make build $X", "make deploy-all", "make -C . build", "make test*"},
		"Bash(docker run *)":   {"docker ps", "docker -D ps", "docker ps --filter run", "docker --context run ps", "docker build . -t run"},
		"Bash(npm run deploy)": {"npm run test", "npm run deploy:dry", "npm test -- deploy", "npm --prefix x run test"},
	} {
		p := profile(t, Rules{Allow: []string{"Bash"}, Deny: []string{rule}})
		for _, text := range commands {
			if d := p.Decide(Request{Tool: bash, Command: text}); d.Kind != Allow {
				t.Errorf("deny %s: %q is denied: %s", rule, text, d.Rule)
			}
		}
	}
}
