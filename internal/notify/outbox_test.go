package notify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Where it cannot even be set aside, the log does not say that it was.
func TestNew_SaysThatADamagedStateFileCannotBeSetAside(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.dir, stateFile)
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(w.dir, w.dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatalf("mount (these tests run as root): %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.dir, unix.MNT_DETACH) })
	if err := unix.Mount("", w.dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, stop := w.start()
	stop()
	if log := w.logged(); !strings.Contains(log, "cannot be set aside") || strings.Contains(log, "aside=") || strings.Contains(log, "is set aside") || !strings.Contains(log, file) {
		t.Errorf("logged %s", log)
	}
}
