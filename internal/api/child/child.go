package child

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/beginning"
)

// Death is a request whose process ended before it answered. It says nothing of
// the files by itself.
type Death struct {
	Why string
	// Convicts: the process exceeded its own bounds, or crashed. Not when another
	// killed it, or the machine was out of memory.
	Convicts bool
}

// Error says how the process ended.
func (d *Death) Error() string {
	return "its process " + d.Why
}

const (
	// maxAnswers of one child: what its libraries keep in globals goes with it.
	maxAnswers = 1_000
	// maxFrame of what either side reads, in bytes.
	maxFrame = 1 << 30
	// maxWait is for a process that hangs; bounds of work are in processor time.
	maxWait = 10 * time.Minute
	// maxWords of a child's last words, in bytes.
	maxWords = 64 << 10
)

// Bounds of one request.
type Bounds struct {
	// Memory is what the child may allocate, in bytes.
	Memory uint64
	// CPU is its processor time, in seconds.
	CPU uint32
}

// base are the bounds that an operator can set for the process.
var base = Bounds{Memory: 256 << 20, CPU: 10}

// SetDefault sets the default bounds; it is called before the first request.
func SetDefault(b Bounds) { base = b }

// Default are the bounds of a request that needs no others.
func Default() Bounds { return base }

// Refusal is an error of the work itself, as against a Death.
type Refusal string

// Error is what the work said.
func (r Refusal) Error() string { return string(r) }

// Parent keeps one child for one kind of work.
type Parent struct {
	// Name under which the child's package calls Serve.
	Name string

	mu      sync.Mutex
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	words   *beginning.Writer
	answers int
}

// Ask has the child answer a request; requests take turns. An error is a Refusal
// or a *Death.
func (p *Parent) Ask(request []byte, b Bounds) ([]byte, error) {
	return p.Follow(context.Background(), request, b, nil)
}

// Follow is Ask that ends with the context, whose error it returns then: the child is
// killed. news gets what the work tells on its way (Tell); it may be nil.
func (p *Parent) Follow(ctx context.Context, request []byte, b Bounds, news func([]byte)) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.answers >= maxAnswers {
		_ = p.end(b) // it has done its work
	}
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return nil, &Death{Why: "could not be started: " + err.Error()}
		}
	}
	p.answers++
	process := p.cmd.Process
	hang := time.AfterFunc(maxWait, func() { _ = process.Kill() })
	defer hang.Stop()
	defer context.AfterFunc(ctx, func() { _ = process.Kill() })()
	err := writeRequest(p.in, request, b)
	var kind byte
	var answer []byte
	for err == nil {
		if kind, answer, err = readAnswer(p.out); err != nil || kind != kindNews {
			break
		}
		if news != nil {
			news(answer)
		}
	}
	if err != nil {
		death := p.end(b)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, death
	}
	if kind != kindAnswer {
		return nil, Refusal(answer)
	}
	return answer, nil
}

// start starts a child. It gets no environment: there may be secrets in ours.
func (p *Parent) start() error {
	self := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		var err error
		if self, err = os.Executable(); err != nil {
			return err
		}
	}
	cmd := &exec.Cmd{Path: self, Args: []string{p.Name}, Env: []string{"GOTRACEBACK=single"}, Dir: "/"}
	w := beginning.Of(maxWords)
	cmd.Stderr = w
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.in, p.out, p.words, p.answers = cmd, in, bufio.NewReader(out), w, 0
	return nil
}

// end waits for the child's end, which an end of its input brings about, and
// says how it came.
func (p *Parent) end(b Bounds) *Death {
	_ = p.in.Close()
	err := p.cmd.Wait()
	state, said := p.cmd.ProcessState, p.words.String()
	p.cmd = nil
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case err == nil:
		return &Death{Why: "ended without an answer"}
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		return &Death{Why: "was killed by another"}
	case status.ExitStatus() == exitCPU:
		return &Death{Why: fmt.Sprintf("took more than %d s of processor time", b.CPU), Convicts: true}
	case strings.Contains(said, "pthread_create") || strings.Contains(said, "new OS thread"):
		// A thread's stack is memory too; but a machine may also have no thread left.
		if !p.starts() {
			return &Death{Why: "could not start a thread"}
		}
		fallthrough
	case strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate"),
		// The kernel could not grow a stack: a fault of Go's own code is a panic.
		strings.HasPrefix(said, "SIGSEGV"):
		return &Death{Why: fmt.Sprintf("took more than %d MiB of memory", b.Memory>>20), Convicts: true}
	}
	first, _, _ := strings.Cut(said, "\n")
	const shown = 200
	return &Death{Why: fmt.Sprintf("crashed (%v: %.*s)", err, shown, first), Convicts: true}
}

// starts reports whether this machine can start another child, with the threads
// that Go's runtime begins with.
func (p *Parent) starts() bool {
	probe := &Parent{Name: p.Name}
	if probe.start() != nil {
		return false
	}
	_ = probe.in.Close()
	return probe.cmd.Wait() == nil
}

var errFrame = errors.New("the frame is too large")

// A request is its bounds and a frame.
func writeRequest(w io.Writer, request []byte, b Bounds) error {
	out := bufio.NewWriter(w)
	_ = binary.Write(out, binary.BigEndian, b)
	_ = binary.Write(out, binary.BigEndian, uint32(min(len(request), maxFrame+1))) //nolint:gosec // a longer one is refused
	_, _ = out.Write(request)
	return out.Flush()
}

func readRequest(r io.Reader) (request []byte, b Bounds, err error) {
	if err := binary.Read(r, binary.BigEndian, &b); err != nil {
		return nil, b, err
	}
	request, err = readFrame(r)
	return request, b, err
}

func readFrame(r io.Reader) ([]byte, error) {
	var n uint32
	if err := binary.Read(r, binary.BigEndian, &n); err != nil {
		return nil, err
	}
	if n > maxFrame {
		return nil, errFrame
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return text, err
}

// An answer is one byte, what it is, and a frame. News may come before it.
const (
	kindAnswer byte = iota
	kindRefusal
	kindNews
)

func writeAnswer(w io.Writer, out []byte, err error) error {
	if err != nil {
		text := err.Error()
		return writeKind(w, kindRefusal, []byte(text[:min(len(text), maxWords)]))
	}
	return writeKind(w, kindAnswer, out)
}

func writeKind(w io.Writer, kind byte, out []byte) error {
	b := bufio.NewWriter(w)
	_ = b.WriteByte(kind)
	_ = binary.Write(b, binary.BigEndian, uint32(len(out))) //nolint:gosec // bounded by the work
	_, _ = b.Write(out)
	return b.Flush()
}

func readAnswer(r *bufio.Reader) (kind byte, answer []byte, err error) {
	if kind, err = r.ReadByte(); err != nil {
		return 0, nil, err
	}
	answer, err = readFrame(r)
	return kind, answer, err
}

// Close ends the child, if there is one.
func (p *Parent) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.end(base)
	}
}
