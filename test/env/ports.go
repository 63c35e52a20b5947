package env

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Servers get ports below the range the kernel gives to outgoing connections
// (32768 and up on Linux), where none is taken between our look and their use.
const firstPort, lastPort = 12000, 30000

// port is a TCP port on the loopback interface that nobody else who asks here,
// in this process or another, will get until it is released.
type port struct {
	number int
	lock   *os.File
	once   sync.Once
}

// reservePort finds a free port. The lock is the kernel's, on a file a port: it
// goes when the process does.
func reservePort() (*port, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("fleetbroker-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	const count = lastPort - firstPort
	start := rand.IntN(count)
	for i := range count {
		number := firstPort + (start+i)%count
		p, err := tryPort(dir, number)
		if err != nil {
			return nil, fmt.Errorf("reserve a port: %w", err)
		}
		if p != nil {
			return p, nil
		}
	}
	return nil, errors.New("reserve a port: all are taken")
}

// tryPort returns nil without an error when the port is not to be had.
func tryPort(dir string, number int) (*port, error) {
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	p := &port{number: number, lock: lock}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		p.release()
		return nil, nil
	}
	listener, err := net.Listen("tcp", p.address())
	if err != nil {
		p.release()
		return nil, nil
	}
	return p, listener.Close()
}

// address is what a server listens on.
func (p *port) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// listen listens on the port. A program that is being started at this instant
// has, between fork and exec, a copy of the socket that the port was tried
// with; the port is taken for as long.
func (p *port) listen() (net.Listener, error) {
	const patience, pause = 2 * time.Second, 5 * time.Millisecond
	for deadline := time.Now().Add(patience); ; <-time.After(pause) {
		listener, err := net.Listen("tcp", p.address())
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return listener, err
		}
	}
}

// release lets others have the port.
func (p *port) release() { p.once.Do(func() { _ = p.lock.Close() }) }
