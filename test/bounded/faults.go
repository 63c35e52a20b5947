package bounded

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// usualFault is what the first touch of a page of memory costs at the most on machines that
// tests are written for. Some virtual machines take ten times as long, and an input that fills
// memory would then be held to a figure that is the machine's.
const usualFault = 2 * time.Microsecond

// Time is the processor time, of user and system, of a process that has ended and of those
// that it waited for, without what touching new memory costs on this machine beyond the usual.
func Time(p *os.ProcessState) time.Duration {
	spent := p.UserTime() + p.SystemTime()
	usage, known := p.SysUsage().(*syscall.Rusage)
	if !known {
		return spent
	}
	return spent - time.Duration(usage.Minflt)*max(0, fault()-usualFault)
}

// fault is what the first touch of a page costs here: the least of some rounds.
var fault = sync.OnceValue(func() time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const size, rounds = 16 << 20, 5
	least := time.Hour
	for range rounds {
		memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return 0
		}
		before := threadTime()
		for i := 0; i < size; i += os.Getpagesize() {
			memory[i] = 1
		}
		least = min(least, (threadTime()-before)/time.Duration(size/os.Getpagesize()))
		_ = unix.Munmap(memory)
	}
	return least
})

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
