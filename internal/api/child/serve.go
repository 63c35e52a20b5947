package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

const (
	// exitCPU is the exit code of a child whose request took longer.
	exitCPU = 124
	// exitBroken: it cannot bound itself, or its pipe is broken.
	exitBroken = 3
)

// Serve makes this process the child of a name and exits, if it was started as
// that, and returns otherwise. It is called by the init of the package whose
// work it is: before main or any test, so that the child runs nothing else.
func Serve(name string, work func(request []byte) ([]byte, error)) {
	ServeTelling(name, func(request []byte, _ Tell) ([]byte, error) { return work(request) })
}

// Tell hands news to who follows the request, before its answer. It is for the goroutine
// of the work.
type Tell func(news []byte)

// ServeTelling is Serve of work that tells how far it is.
func ServeTelling(name string, work func(request []byte, tell Tell) ([]byte, error)) {
	if len(os.Args) == 1 && os.Args[0] == name {
		os.Exit(serve(os.Stdin, os.Stdout, work))
	}
}

// serve answers until its input ends.
func serve(in io.Reader, out io.Writer, work func([]byte, Tell) ([]byte, error)) int {
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		os.Exit(exitCPU)
	}()
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM) // the parent's end is ours
	r := bufio.NewReader(in)
	for first := true; ; first = false {
		request, bounds, err := readRequest(r)
		if errors.Is(err, io.EOF) {
			return 0
		}
		if err == nil {
			err = bounds.limit()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "read a request:", err)
			return exitBroken
		}
		if own := data(); first && dataLimited && own > bounds.Memory { // the kernel refuses only what comes now
			fmt.Fprintf(os.Stderr, "out of memory: the process itself has %d bytes, and %d are allowed\n", own, bounds.Memory)
			return exitBroken
		}
		made, err := work(request, func(news []byte) {
			if writeKind(out, kindNews, news) != nil {
				os.Exit(exitBroken) // nobody follows any more
			}
		})
		if err := writeAnswer(out, made, err); err != nil {
			return exitBroken
		}
	}
}

// limit holds the process to the bounds. The limit of processor time counts from
// the start of the process.
func (b Bounds) limit() error {
	debug.SetMemoryLimit(int64(b.Memory / 4 * 3)) //nolint:gosec // where the collector begins to work hard; at half, it took most of the time of a build that ends for memory
	limit := syscall.Rlimit{}
	if dataLimited {
		if err := syscall.Getrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
			return err
		}
		limit.Cur = min(b.Memory, limit.Max)
		if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
			return err
		}
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return err
	}
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		return err
	}
	limit.Cur = uint64(used.Utime.Sec+used.Stime.Sec+1) + uint64(b.CPU) //nolint:gosec // seconds since a start
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &limit)
}

// data is what counts towards RLIMIT_DATA already, in bytes; 0 where the kernel does
// not say.
func data() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident, shared, code, libraries, pages uint64
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared, &code, &libraries, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize()) //nolint:gosec // a size
}
