//go:build !linux

package env

import "syscall"

// dieWithParent cannot tie a server's life to ours on this system; Stop has to
// be called.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitStopped has no way to look here.
func awaitStopped(int) error { return nil }
