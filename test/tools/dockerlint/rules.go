package main

import (
	"path"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// judge holds stages to what BuildKit checks only in a build, and to what our
// images promise: the last one is nobody's and starts without a shell.
func judge(stages []instructions.Stage, found func(line int, rule, message string)) {
	names := map[string]bool{}
	for i, stage := range stages {
		at := stage.Location[0].Start.Line
		if names[stage.Name] {
			found(at, "DuplicateStageName", "stage "+stage.Name+" stands twice")
		}
		if base := stage.BaseName; !names[base] && base != "scratch" && !strings.Contains(base, "@") {
			if _, tag, ok := strings.Cut(path.Base(base), ":"); !ok || tag == "latest" {
				found(at, "UntaggedBase", base+" is another image every day: name a version")
			}
		}
		for _, c := range stage.Commands {
			command(c, names, found)
		}
		if i == len(stages)-1 {
			last(stage, found)
		}
		names[stage.Name] = true
	}
}

func command(c instructions.Command, names map[string]bool, found func(line int, rule, message string)) {
	at := c.Location()[0].Start.Line
	switch c := c.(type) {
	case *instructions.AddCommand:
		found(at, "AddInsteadOfCopy", "ADD fetches and unpacks: use COPY")
	case *instructions.WorkdirCommand:
		if !path.IsAbs(c.Path) {
			found(at, "WorkdirRelativePath", c.Path+" depends on what the base says")
		}
	case *instructions.CopyCommand:
		if _, err := strconv.Atoi(c.From); c.From != "" && err != nil && !names[c.From] {
			found(at, "UnknownStage", "COPY --from="+c.From+" is no stage above")
		}
	case *instructions.CmdCommand:
		if c.PrependShell {
			found(at, "JSONArgsRecommended", "write CMD as a JSON list, so that signals reach the program")
		}
	case *instructions.EntrypointCommand:
		if c.PrependShell {
			found(at, "JSONArgsRecommended", "write ENTRYPOINT as a JSON list, so that signals reach the program")
		}
	case *instructions.EnvCommand:
		for _, pair := range c.Env {
			secret(at, pair.Key, found)
		}
	case *instructions.ArgCommand:
		for _, pair := range c.Args {
			secret(at, pair.Key, found)
		}
	}
}

func secret(at int, name string, found func(line int, rule, message string)) {
	for _, word := range []string{"TOKEN", "PASSWORD", "SECRET", "KEY"} {
		if strings.Contains(strings.ToUpper(name), word) {
			found(at, "SecretsUsedInArgOrEnv", name+" stays in the image")
		}
	}
}

// last holds the stage that becomes the image.
func last(stage instructions.Stage, found func(line int, rule, message string)) {
	at, user, starts := stage.Location[0].Start.Line, "", false
	for _, c := range stage.Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.EntrypointCommand:
			starts = true
		}
	}
	id, _, _ := strings.Cut(user, ":")
	if n, err := strconv.Atoi(id); err != nil || n == 0 {
		found(at, "RootUser", "USER must be a number other than 0, which runAsNonRoot can check")
	}
	if !starts {
		found(at, "NoEntrypoint", "the image starts nothing")
	}
}
