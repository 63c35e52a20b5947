package bounded

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Stopwatch measures how long something takes that has to be quick, on a machine that may
// be busy with something else.
type Stopwatch struct {
	began  time.Time
	waited time.Duration
	read   func() time.Duration
}

// StartStopwatch starts one.
func StartStopwatch() Stopwatch { return startStopwatch(waitedForProcessor) }

func startStopwatch(read func() time.Duration) Stopwatch {
	return Stopwatch{began: time.Now(), waited: read(), read: read}
}

// Late is nil where not more than quick has passed, without the time in which some task of
// the machine waited for a processor, and not more than busy with it. On an idle machine, and
// where the system does not say who waits, quick alone holds.
func (s Stopwatch) Late(quick, busy time.Duration) error {
	took, waited := time.Since(s.began), s.read()-s.waited
	if took-waited <= quick && took <= busy {
		return nil
	}
	return fmt.Errorf("it took %s, within %s of which a task waited for a processor; want at most %s without that, and %s with it", took, waited, quick, busy)
}

// waitedForProcessor is for how long, since the machine's start, some task that could run
// did not; zero where the system does not say it.
func waitedForProcessor() time.Duration {
	b, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	return pressure(string(b))
}

// pressure reads the total of Linux' pressure stall information, in microseconds.
func pressure(text string) time.Duration {
	for line := range strings.Lines(text) {
		if kind, rest, _ := strings.Cut(line, " "); kind == "some" {
			_, total, _ := strings.Cut(strings.TrimSpace(rest), "total=")
			if n, err := strconv.ParseInt(total, 10, 64); err == nil {
				return time.Duration(n) * time.Microsecond
			}
		}
	}
	return 0
}
