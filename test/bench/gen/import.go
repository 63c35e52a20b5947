package gen

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// Commit is a commit to make.
type Commit struct {
	// Branch that it becomes the head of, on top of what is there.
	Branch string
	// By is who commits, When in seconds since 1970.
	By   string
	When int64
	// Message of the commit.
	Message string
	// Files to write.
	Files map[string][]byte
}

// Import commits to a bare repository with git fast-import, which needs no
// worktree, and returns the commit's hash.
func Import(ctx context.Context, dir string, c Commit) (string, error) {
	cmd := exec.CommandContext(ctx, "git", "fast-import", "--quiet", "--done")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", fmt.Errorf("git fast-import: %w", err)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// Without a branch this is empty: the commit is its first.
	parent, _ := env.Git(ctx, dir, "rev-parse", "--verify", "--quiet", "refs/heads/"+c.Branch)
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("git fast-import: %w", err)
	}
	c.write(in, parent)
	_ = in.Close() // a pipe that broke shows in how the program ended
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("git fast-import into %s: %w: %s", dir, err, said.Bytes())
	}
	return env.Git(ctx, dir, "rev-parse", "refs/heads/"+c.Branch)
}

func (c Commit) write(to io.Writer, parent string) {
	w := bufio.NewWriterSize(to, 1<<20)
	fmt.Fprintf(w, "commit refs/heads/%s\nauthor %s %d +0000\ncommitter %s %d +0000\ndata %d\n%s\n", c.Branch, c.By, c.When, c.By, c.When, len(c.Message), c.Message)
	if parent != "" {
		fmt.Fprintf(w, "from %s\n", parent)
	}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n", path, len(c.Files[path]))
		_, _ = w.Write(c.Files[path])
		_ = w.WriteByte('\n')
	}
	fmt.Fprintln(w, "done")
	_ = w.Flush()
}
