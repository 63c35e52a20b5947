package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// DefaultBranch is what new repositories and clones of empty ones start on.
const DefaultBranch = "main"

// Git runs the native git client in a directory and returns what it printed
// on standard output, without the space around it. Neither the machine's nor
// the user's git configuration is read.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	return runGit(ctx, dir, nil, args...)
}

func runGit(ctx context.Context, dir string, environment []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(gitEnviron(), environment...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if said.Len() == 0 { // git fsck names what is wrong on standard output
			said = out
		}
		return "", fmt.Errorf("git %s in %s: %w: %s", strings.Join(args, " "), dir, err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// gitEnviron is our environment without what would steer git: a test may run
// inside a git hook, and a developer's configuration may sign or rewrite.
func gitEnviron() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIT_") {
			kept = append(kept, variable)
		}
	}
	return append(kept, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
}

// bareConfig sets a repository up as a forge's: pushes over http are accepted,
// and objects are checked for being well formed. Automatic garbage collection
// is off, because git would leave it running in the background.
const bareConfig = `[http]
	receivepack = true
[receive]
	fsckObjects = true
	autogc = false
	advertisePushOptions = true
[gc]
	auto = 0
`

// InitBare makes an empty bare repository, set up as a forge would.
func InitBare(ctx context.Context, dir string) error {
	if _, err := Git(ctx, "", "init", "--quiet", "--bare", "--initial-branch="+DefaultBranch, dir); err != nil {
		return err
	}
	config, err := os.OpenFile(filepath.Join(dir, "config"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("configure %s: %w", dir, err)
	}
	_, err = config.WriteString(bareConfig)
	if err = errors.Join(err, config.Close()); err != nil {
		return fmt.Errorf("configure %s: %w", dir, err)
	}
	return nil
}

// InstallHook puts a server-side hook (pre-receive, update, post-receive) into
// a bare repository. The script is a shell's, without the #! line.
func InstallHook(repo, hook, script string) error {
	path := filepath.Join(repo, "hooks", hook)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("install hook %s: %w", hook, err)
	}
	// Written aside and renamed, since git may be about to run the old one.
	scratch := path + ".new"
	if err := os.WriteFile(scratch, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		return fmt.Errorf("install hook %s: %w", hook, err)
	}
	if err := os.Rename(scratch, path); err != nil {
		return fmt.Errorf("install hook %s: %w", hook, err)
	}
	return nil
}

// RemoveHook removes what InstallHook installed, if it is there.
func RemoveHook(repo, hook string) error {
	err := os.Remove(filepath.Join(repo, "hooks", hook))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove hook %s: %w", hook, err)
	}
	return nil
}
