package cli

import (
	"github.com/fleetbroker/fleetbroker/internal/newfleet"

	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const template = "../../fleet-repo-template"

// fence is a fenced block of a Markdown page, inline is a command in a line of
// text.
var (
	fence  = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$")
	inline = regexp.MustCompile("`fleetbroker ([^`]+)`")
)

// Every command that a document shows exists, with its flags and its number of
// arguments.
func TestDocumentsShowCommandsThatExist(t *testing.T) {
	pages, err := filepath.Glob(template + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, template+"/README.md", "../../README.md", template+"/.github/workflows/fleet.yml", template+"/.gitlab-ci.yml", template+"/.gitea/workflows/fleet.yml")
	checked := 0
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandsIn(page, string(content)) {
			checked++
			if err := parses(line); err != nil {
				t.Errorf("%s: fleetbroker %s: %v", page, line, err)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d commands found", checked)
	}
}

// commandsIn are the command lines of a page, without the program's name.
func commandsIn(page, text string) []string {
	var out []string
	blocks := text
	if strings.HasSuffix(page, ".md") {
		blocks = ""
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			blocks += m[1]
		}
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
	}
	for _, line := range strings.Split(strings.ReplaceAll(blocks, "\\\n", " "), "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		for _, prefix := range []string{"- run: ", "run: ", "- ", "script: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		for _, part := range strings.Split(line, " && ") {
			if rest, ok := strings.CutPrefix(part, "fleetbroker "); ok {
				out = append(out, rest)
			}
		}
	}
	return out
}

// parses reads a command line as the program would, without running it.
func parses(line string) error {
	for _, end := range []string{" #", " |", " >", " ||", " &"} {
		line, _, _ = strings.Cut(line, end)
	}
	// Shell's variables stand for one word, or for more flags.
	line = regexp.MustCompile(`"\$[^"]*"|"[^"]*\$\{\{[^"]*"`).ReplaceAllString(line, "word")
	line = regexp.MustCompile(`\$\{[^}]*\}|\$[a-z]+`).ReplaceAllString(line, "")
	return parsesWords(strings.Fields(line))
}

func parsesWords(words []string) error {
	root := NewRoot(Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	cmd, args, err := root.Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(args); err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil && len(words) > 1 {
		return err
	}
	return nil
}

// The install base builds, and starts the programs with flags they have.
func TestInstallBase(t *testing.T) {
	dirs, err := filepath.Glob(template + "/install/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	for _, dir := range dirs {
		build := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
		objects, err := build.Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if objects.Size() == 0 {
			t.Errorf("%s builds nothing", dir)
		}
	}
	content, err := os.ReadFile(template + "/install/broker/statefulset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var daemon struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct{ Args []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(content, &daemon); err != nil {
		t.Fatal(err)
	}
	args := daemon.Spec.Template.Spec.Containers[0].Args
	if err := parses(strings.Join(args, " ")); err != nil {
		t.Errorf("install/broker starts fleetbroker %v: %v", args, err)
	}
}

// What may be added to the install base fits it.
func TestInstallComponents(t *testing.T) {
	dir := t.TempDir()
	base, err := filepath.Abs(template + "/install/broker")
	if err != nil {
		t.Fatal(err)
	}
	if base, err = filepath.Rel(dir, base); err != nil {
		t.Fatal(err)
	}
	overlay := "resources: [" + base + "]\ncomponents: [" + base + "/forge, " + base + "/notify, " + base + "/sources, " + base + "/login, " + base + "/ephemeral, " + base + "/tracing, " + base + "/prices]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects.Resources() {
		if o.GetKind() == "CronJob" {
			args, err := o.GetSlice("spec.jobTemplate.spec.template.spec.containers.[name=prices].args")
			if err != nil {
				t.Fatal(err)
			}
			words := make([]string, len(args))
			for i, a := range args {
				words[i] = fmt.Sprint(a)
			}
			if err := parsesWords(words); err != nil {
				t.Errorf("the CronJob starts fleetbroker %q: %v", words, err)
			}
		}
		if o.GetKind() != "StatefulSet" {
			continue
		}
		args, err := o.GetSlice("spec.template.spec.containers.[name=fleetbroker].args")
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Trim(fmt.Sprint(args), "[]")
		if err := parses(line); err != nil || !strings.Contains(line, "--forge-token-file=/etc/fleetbroker/forge/token") || !strings.Contains(line, "--notify-urls-dir=/etc/fleetbroker/notify") || !strings.Contains(line, "--source-hosts=git.example.org,api.github.com") || !strings.Contains(line, "--oidc-session-key-file=/etc/fleetbroker/oidc/session-key") || !strings.Contains(line, "--tracing-endpoint=http://collector.observability.svc:4318") {
			t.Errorf("it starts fleetbroker %s: %v", line, err)
		}
	}
	if strings.Contains(string(text), "volumeClaimTemplates") {
		t.Error("a claim is asked for where there is no StorageClass")
	}
	for _, want := range []string{"sizeLimit: 5Gi", "secretName: fleetbroker-trust", "mountPath: /etc/fleetbroker/notify/vision-slack", "mountPath: /etc/fleetbroker/forge", "port: 587", "port: 4318", "name: fleetbroker-sources", "secretName: fleetbroker-oidc"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Every YAML file of the template can be read, CI's included.
func TestTemplateIsYAML(t *testing.T) {
	for _, forge := range []string{"github", "gitlab", "gitea"} {
		files, err := newfleet.Files(forge)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			ext := filepath.Ext(name)
			if ext != ".yaml" && ext != ".yml" {
				continue
			}
			for _, doc := range strings.Split(string(content), "\n---\n") {
				var v any
				if err := yaml.UnmarshalStrict([]byte(doc), &v); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// Every command says what it does, and shows how, in lines that fit a terminal.
func TestEveryCommandHasHelp(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" || (c.HasParent() && c.Parent().Name() == "completion") {
			return
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: a short help without a full stop is due, not %q", c.CommandPath(), c.Short)
		}
		if c.Example == "" && !c.HasSubCommands() && c.Name() != "version" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, line := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			if len(line) > 120 {
				t.Errorf("%s: a line of help has %d columns: %s", c.CommandPath(), len(line), line)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(NewRoot(Streams{}))
}
