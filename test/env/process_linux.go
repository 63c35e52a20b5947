package env

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// dieWithParent makes the kernel kill a server when the thread that started it
// ends, and puts it into a process group of its own, so that an interrupt
// typed at a terminal reaches only us and servers are stopped in order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// awaitStopped returns once every thread of a process that was sent SIGSTOP
// has stopped: the signal only begins that.
func awaitStopped(pid int) error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		stopped, err := allStopped(pid)
		if stopped || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d has not stopped", pid)
		}
		runtime.Gosched()
	}
}

func allStopped(pid int) (bool, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		// The state stands behind the name, which is in parentheses (proc(5)).
		_, after, _ := strings.Cut(string(text), ") ")
		if !strings.HasPrefix(after, "T") {
			return false, nil
		}
	}
	return len(files) > 0, nil
}
