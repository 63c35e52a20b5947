package env

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ContainerUser is the account that images run as.
const ContainerUser = 65532

// containerRoot tells a process that StartContainer started what to become.
const containerRoot = "FLEETBROKER_CONTAINER_ROOT"

// Container is how a program of an image runs.
type Container struct {
	Name string   // of the log, Dir/<name>.log
	Dir  string   // for the log
	Root string   // the image's files
	Args []string // program and arguments, as paths in Root
	Env  []string // all of it, as "NAME=value"
	// Writable are directories of Root that the program may write to: volumes.
	Writable []string
}

// StartContainer runs a program as a container engine would that isolates files and
// processes: Root is its root and read-only but for Writable, /proc is its own, it runs
// as ContainerUser without a capability, and gets none by what it executes. The network
// is shared, so that servers on the loopback interface are reached.
//
// TestMain of the caller must begin with BeContainer.
func StartContainer(c Container) (*Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, c.Args...)
	cmd.Env = append([]string{containerRoot + "=" + c.Root}, c.Env...)
	cmd.Env = append(cmd.Env, containerRoot+"_WRITABLE="+strings.Join(c.Writable, ":"))
	cmd.SysProcAttr = dieWithParent()
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: ContainerUser, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: ContainerUser, HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}
	}
	p, err := startCommand(c.Name, c.Dir, cmd)
	if err != nil {
		return nil, err
	}
	return &Program{p}, nil
}

// BeContainer becomes what StartContainer was asked for, and returns at once in every
// other process.
func BeContainer() {
	root := os.Getenv(containerRoot)
	if root == "" {
		return
	}
	runtime.LockOSThread()
	if err := becomeContainer(root); err != nil {
		fmt.Fprintln(os.Stderr, "become the container:", err)
		os.Exit(125)
	}
}

func becomeContainer(root string) error {
	var environment, writable []string
	for _, e := range os.Environ() {
		if dirs, ok := strings.CutPrefix(e, containerRoot+"_WRITABLE="); ok {
			writable = strings.FieldsFunc(dirs, func(r rune) bool { return r == ':' })
		} else if !strings.HasPrefix(e, containerRoot+"=") {
			environment = append(environment, e)
		}
	}
	bind := func(path string, more uintptr) error {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", path, err)
		}
		if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NODEV|unix.MS_NOSUID|more, ""); err != nil {
			return fmt.Errorf("mount %s again: %w", path, err)
		}
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	proc := filepath.Join(root, "proc")
	if err := os.MkdirAll(proc, 0o755); err != nil {
		return err
	}
	if err := bind(root, unix.MS_RDONLY); err != nil {
		return err
	}
	for _, dir := range writable {
		if err := bind(filepath.Join(root, dir), 0); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := errors.Join(unix.Chroot(root), unix.Chdir("/")); err != nil {
		return fmt.Errorf("enter %s: %w", root, err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if os.Getuid() == 0 {
		// By the system calls: of this thread alone, which is the one that execs.
		if _, _, err := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); err != 0 {
			return fmt.Errorf("give up groups: %w", err)
		}
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESGID, ContainerUser, ContainerUser, ContainerUser); err != 0 {
			return fmt.Errorf("become group %d: %w", ContainerUser, err)
		}
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, ContainerUser, ContainerUser, ContainerUser); err != 0 {
			return fmt.Errorf("become user %d: %w", ContainerUser, err)
		}
		// Which took back the parent-death signal.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return err
		}
	}
	return unix.Exec(os.Args[1], os.Args[1:], environment)
}
