package bytesize_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/bytesize"
)

func TestText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1025: "1025 bytes", 300 << 10: "300 KiB", 1 << 20: "1 MiB", 1<<20 + 1024: "1025 KiB", 512 << 20: "512 MiB"} {
		if got := bytesize.Text(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
