package permission

import (
	"path"
	"strings"
)

// grammar lists the options that a program takes before its subcommand. An option that it does not list may have a value
// in the next word, or not.
type grammar struct {
	flags, values string // each option between spaces
	aliases       string // a value that begins so defines a subcommand
}

// containers, clusters and services are the grammars of several programs.
var (
	containers = &grammar{flags: " -D --debug --tls --tlsverify -v --version -h --help ", values: " --config -c --context -H --host -l --log-level --tlscacert --tlscert --tlskey "}
	clusters   = &grammar{
		flags:  " --insecure-skip-tls-verify --match-server-version --warnings-as-errors --disable-compression -h --help ",
		values: " -n --namespace -s --server --context --cluster --user --kubeconfig --token --as --as-group --as-uid --cache-dir --certificate-authority --client-certificate --client-key --request-timeout --tls-server-name -v --v ",
	}
	services = &grammar{
		flags:  " --user --system -a --all -l --full -q --quiet --no-block --no-wall --no-pager --no-legend --no-reload --now --runtime -f --force --failed --no-ask-password --wait --dry-run --plain -r --recursive ",
		values: " -H --host -M --machine -t --type -p --property -P --state --job-mode -s --signal --kill-who --kill-whom --root --image -n --lines -o --output ",
	}
	packages = &grammar{
		flags:  " -g --global -s --silent -q --quiet -y --yes -v --version -h --help --offline --workspaces -ws --include-workspace-root --no-audit --no-fund --force -f ",
		values: " --prefix -C --dir --cwd -w --workspace --filter -F --registry --loglevel --userconfig --cache ",
	}
	others = &grammar{}
)

// grammars are programs with options before their subcommands.
var grammars = map[string]*grammar{
	"git": {
		flags:   " -p --paginate -P --no-pager --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path --info-path --exec-path -h --help -v --version ",
		values:  " -C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source ",
		aliases: "alias.",
	},
	"docker": containers, "podman": containers, "nerdctl": containers, "docker-compose": others, "ctr": others, "crictl": others, "buildah": others, "skopeo": others,
	"kubectl": clusters, "oc": clusters, "helm": clusters, "flux": clusters, "argocd": others, "minikube": others, "kind": others,
	"systemctl": services, "loginctl": services, "machinectl": services, "networkctl": services, "resolvectl": services,
	"npm": packages, "pnpm": packages, "yarn": packages, "bun": others, "pip": others, "pip3": others, "uv": others, "poetry": others, "cargo": others, "rustup": others, "go": others,
	"bundle": others, "gem": others, "composer": others, "make": others, "gmake": others, "bazel": others,
	"apt": others, "apt-get": others, "dnf": others, "yum": others, "zypper": others, "apk": others, "pacman": others, "brew": others, "snap": others, "flatpak": others,
	"gh": others, "glab": others, "hg": others, "svn": others, "jj": others,
	"terraform": others, "tofu": others, "pulumi": others, "aws": others, "gcloud": others, "az": others, "doctl": others, "fly": others, "flyctl": others, "heroku": others, "vault": others, "consul": others, "nomad": others,
	"ip": others, "nmcli": others, "virsh": others, "lxc": others, "incus": others, "adb": others, "fairlead": others,
}

// grammarOf returns the grammar of the program that words run; nil if options count as words for it.
func grammarOf(words []word) *grammar {
	if !words[0].known {
		return nil
	}
	return grammars[path.Base(words[0].text)]
}

// skips says how many words an option takes, if the next word is its value and if it is not. Equal numbers are certain,
// and zeros say that the word is no option.
func (g *grammar) skips(w word) (least, most int) {
	if !w.known {
		switch may, whole := w.shape.option(); {
		case !may:
			return 0, 0
		case whole:
			return 1, 1
		default:
			return 1, 2
		}
	}
	switch name := " " + w.text + " "; {
	case !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+"):
		return 0, 0
	case strings.Contains(w.text, "="), w.text == "--", w.text[0] == '+', strings.Contains(g.flags, name):
		return 1, 1
	case strings.Contains(g.values, name):
		return 2, 2
	default:
		return 1, 2
	}
}

// defines reports whether the value of an option may define a subcommand.
func (g *grammar) defines(option, value word) bool {
	if g.aliases == "" || option.known && option.text != "-c" && option.text != "--config-env" {
		return false
	}
	return !value.known || strings.HasPrefix(strings.ToLower(value.text), g.aliases)
}

// subcommand returns a command without the options before its subcommand; nil if it has none, or if the subcommand is
// not certain.
func subcommand(words []word) []word {
	g := grammarOf(words)
	if g == nil {
		return nil
	}
	for i := 1; i < len(words); {
		least, most := g.skips(words[i])
		switch {
		case least == 0 && i == 1, least != most:
			return nil
		case least == 0:
			return append([]word{words[0]}, words[i:]...)
		}
		i += least
	}
	return nil
}
