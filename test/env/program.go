package env

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"
)

// Program is a program of the project's own that runs as a child process. It
// dies with its parent.
type Program struct{ p *process }

// StartProgram runs a program with its output in dir/<name>.log and returns
// once it has been started.
func StartProgram(name, dir, path string, args ...string) (*Program, error) {
	return StartProgramWith(nil, name, dir, path, args...)
}

// StartProgramWith is StartProgram with more environment variables, as
// "NAME=value".
func StartProgramWith(environment []string, name, dir, path string, args ...string) (*Program, error) {
	p, err := startProcess(name, dir, path, args, environment...)
	if err != nil {
		return nil, err
	}
	return &Program{p}, nil
}

// Stop asks the program to end, as an orchestrator would, and kills it when it
// does not.
func (p *Program) Stop() error { return p.p.stop() }

// Kill ends the program at once: SIGKILL.
func (p *Program) Kill() error { return p.p.kill() }

// Pause and Resume stop and continue the program: SIGSTOP, SIGCONT.
func (p *Program) Pause() error {
	if err := p.p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStopped(p.p.pid())
}

// Resume continues a paused program.
func (p *Program) Resume() error { return p.p.signal(syscall.SIGCONT) }

// Done is closed when the program has ended.
func (p *Program) Done() <-chan struct{} { return p.p.done }

// Failure explains why a program that should run does not, with the end of its
// log. Call it when Done is closed.
func (p *Program) Failure() error { return p.p.failure() }

// ProcessorTime is what the program used of processors, its own and the
// kernel's for it. Call it when Done is closed.
func (p *Program) ProcessorTime() time.Duration {
	state := p.p.cmd.ProcessState
	return state.UserTime() + state.SystemTime()
}

// LogFile is where its output goes.
func (p *Program) LogFile() string { return p.p.log }

// PID is its process id.
func (p *Program) PID() int { return p.p.pid() }

// Await waits until the program answers a probe at an address with 200.
func (p *Program) Await(ctx context.Context, url string) error {
	return p.await(ctx, url, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return errors.New(res.Status)
		}
		return nil
	})
}

// AwaitTLS waits until the program shows a certificate at an address, of
// whomever.
func (p *Program) AwaitTLS(ctx context.Context, address string) error {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // whether there is one is asked, not whose
	return p.await(ctx, address, func() error {
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// await asks until it is answered or the program has ended.
func (p *Program) await(ctx context.Context, what string, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last: %w)", what, ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ReserveAddress finds a free loopback address and keeps it from everybody who
// asks here until release is called.
func ReserveAddress() (address string, release func(), err error) {
	p, err := reservePort()
	if err != nil {
		return "", nil, fmt.Errorf("reserve an address: %w", err)
	}
	return p.address(), p.release, nil
}
