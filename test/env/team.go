package env

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Team is somebody with a clone of a repository and the native git client.
type Team struct {
	// Dir is the clone's worktree.
	Dir string
	// Name and Email are the author's.
	Name, Email string
	// Env is added to git's environment, for example GIT_SSH_COMMAND.
	Env []string
}

// CloneTeam clones a repository for somebody called name. Environment
// variables are kept for later commands too.
func CloneTeam(ctx context.Context, url, dir, name string, environment ...string) (*Team, error) {
	t := &Team{Dir: dir, Name: name, Email: name + "@example.org", Env: environment}
	if _, err := runGit(ctx, "", t.environ(), "-c", "init.defaultBranch="+DefaultBranch, "clone", "--quiet", url, dir); err != nil {
		return nil, err
	}
	return t, nil
}

// Git runs any git command in the clone.
func (t *Team) Git(ctx context.Context, args ...string) (string, error) {
	return runGit(ctx, t.Dir, t.environ(), args...)
}

func (t *Team) environ() []string {
	return append(slices.Clone(t.Env),
		"GIT_AUTHOR_NAME="+t.Name, "GIT_AUTHOR_EMAIL="+t.Email,
		"GIT_COMMITTER_NAME="+t.Name, "GIT_COMMITTER_EMAIL="+t.Email)
}

// Write writes files into the worktree, making directories as needed. Paths
// are relative and slash-separated.
func (t *Team) Write(files map[string]string) error {
	for path, content := range files {
		full := filepath.Join(t.Dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

// Commit writes files, commits everything that changed, deletions included,
// and returns the commit's hash.
func (t *Team) Commit(ctx context.Context, message string, files map[string]string) (string, error) {
	if err := t.Write(files); err != nil {
		return "", err
	}
	if _, err := t.Git(ctx, "add", "--all"); err != nil {
		return "", err
	}
	if _, err := t.Git(ctx, "commit", "--quiet", "--message", message); err != nil {
		return "", err
	}
	return t.Git(ctx, "rev-parse", "HEAD")
}

// Remove deletes files or directories and commits that.
func (t *Team) Remove(ctx context.Context, message string, paths ...string) (string, error) {
	for _, path := range paths {
		if err := os.RemoveAll(filepath.Join(t.Dir, filepath.FromSlash(path))); err != nil {
			return "", fmt.Errorf("remove %s: %w", path, err)
		}
	}
	return t.Commit(ctx, message, nil)
}

// Pull brings the clone's branch up to date and puts own commits on top.
func (t *Team) Pull(ctx context.Context) error {
	_, err := t.Git(ctx, "pull", "--quiet", "--rebase")
	return err
}

// Push pushes the current branch, or what the arguments say.
func (t *Team) Push(ctx context.Context, args ...string) error {
	if len(args) == 0 {
		args = []string{"origin", "HEAD"}
	}
	_, err := t.Git(ctx, append([]string{"push", "--quiet"}, args...)...)
	return err
}

// CommitAndPush is Commit and then Push.
func (t *Team) CommitAndPush(ctx context.Context, message string, files map[string]string) (string, error) {
	commit, err := t.Commit(ctx, message, files)
	if err != nil {
		return "", err
	}
	return commit, t.Push(ctx)
}
