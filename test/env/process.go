package env

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// stopGrace is how long a server may take over a polite request to end.
const stopGrace = 10 * time.Second

// process is one running server whose output goes to a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// SeldomCollected is for servers that are not the project's own: they collect
// garbage seldom, which is a sixth of what a cluster takes of processors
// (TestSaidWithKubectl: 55 s instead of 66 s). The project's own programs run as
// they are installed.
const SeldomCollected = "GOGC=400"

// startProcess runs a program and returns once it has been started.
//
// A goroutine of its own starts it and waits for it, locked to its thread:
// the kernel sends the parent-death signal when the thread that forked ends,
// not when the process does.
func startProcess(name, dir, path string, args []string, environment ...string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.SysProcAttr = dieWithParent()
	return startCommand(name, dir, cmd)
}

// startCommand is startProcess of a command that has its environment and attributes.
func startCommand(name, dir string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), cmd: cmd, done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = out, out
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer out.Close()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // how it ended is in cmd.ProcessState
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// pid is the server's process id.
func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends a signal to the server itself.
func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s (pid %d): %w", sig, p.name, p.pid(), err)
	}
	return nil
}

// stop asks the server to end and kills it if it has not within stopGrace.
func (p *process) stop() error {
	// A paused process acts on no other signal.
	if err := errors.Join(p.signal(syscall.SIGCONT), p.signal(syscall.SIGTERM)); err != nil {
		return err
	}
	patience := time.NewTimer(stopGrace)
	defer patience.Stop()
	select {
	case <-p.done:
		return nil
	case <-patience.C:
		return p.kill()
	}
}

// kill ends the server at once.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// failure explains, once done is closed, why a server that should run does
// not, with the end of its log.
func (p *process) failure() error {
	return fmt.Errorf("%s ended early: %s; the end of %s:\n%s", p.name, p.cmd.ProcessState, p.log, logTail(p.log))
}

// logTail returns the last lines of a log file, for an error message.
func logTail(path string) []byte {
	const lines = 15
	text, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return bytes.Join(all, []byte("\n"))
}
