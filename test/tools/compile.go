package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// build compiles one program into home/bin, under the module's lock.
func build(ctx context.Context, name string, p program, home string, progress io.Writer) error {
	root, err := Checkout()
	if err != nil {
		return fmt.Errorf("build %s: %w: run from the checkout, or set %s to a directory that holds it", name, err, AssetsEnv)
	}
	bin := filepath.Join(home, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	unlock, err := lock(ctx, filepath.Join(home, "lock"), func() {
		fmt.Fprintf(progress, "waiting for another build of %s %s\n", p.module, p.version)
	})
	if err != nil {
		return fmt.Errorf("build %s: lock %s: %w", name, home, err)
	}
	defer unlock()
	if _, err := executable(filepath.Join(bin, name)); err == nil {
		return nil // built while we waited
	}
	scratch, err := os.MkdirTemp(home, "build-")
	if err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	defer os.RemoveAll(scratch)

	label := name + " " + p.version
	stop := tick(progress, label)
	took, err := compile(ctx, filepath.Join(root, "test", "tools", p.module), filepath.Join(scratch, name), p)
	stop()
	if err != nil {
		fmt.Fprintf(progress, "building %s failed\n", label)
		return fmt.Errorf("build %s: %w", name, err)
	}
	if err := os.Rename(filepath.Join(scratch, name), filepath.Join(bin, name)); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	fmt.Fprintf(progress, "built %s in %s\n", label, took)
	return nil
}

// compile runs go build in the module's own directory. -mod=readonly keeps a
// build from editing the checked-in go.mod and go.sum.
func compile(ctx context.Context, module, output string, p program) (time.Duration, error) {
	started := time.Now()
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-tags", p.tags, "-ldflags", "-s -w"+p.stamp(), "-o", output, p.pkg)
	cmd.Dir = module
	cgo := "CGO_ENABLED=0"
	if p.cgo {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS=", "GOARCH=", cgo)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// A group of its own, so that cancelling ends the compilers too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("go build %s in %s: %w\n%s", p.pkg, module, err, lastLines(said.Bytes(), 20))
	}
	return time.Since(started).Round(time.Second), nil
}

func lastLines(text []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return bytes.Join(lines, []byte("\n"))
}

// lock takes an exclusive lock that the kernel gives back however this process
// ends. onWait is called once if somebody else has it.
func lock(ctx context.Context, path string, onWait func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	for waited := false; ; waited = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK {
			_ = file.Close()
			return nil, err
		}
		if !waited {
			onWait()
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, ctx.Err()
		case <-retry.C:
		}
	}
}
