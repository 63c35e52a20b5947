package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetbroker/fleetbroker/internal/server/finish"
)

// Limits of every port. Longer waits, such as a long poll, extend their own
// deadline.
const (
	readHeaderTimeout = 10 * time.Second
	requestTimeout    = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	// Of HTTP/2: how much of bodies one connection may have that nobody reads yet.
	maxStreamBuffer  = 64 << 10
	maxReceiveBuffer = 128 << 10
	maxFrame         = 16 << 10
)

// Port is one address with what it serves.
type Port struct {
	// Name for logs and errors: agents, operators, webhooks.
	Name string
	// Address to listen on, "host:port"; port 0 takes a free one.
	Address string
	// TLS of the port; without it the address must be on the loopback interface.
	TLS *tls.Config
	// Handler of the port.
	Handler http.Handler
	// Connections at a time, default 20,000, and 1,024 where none has to show a certificate.
	// Where clients show certificates half of them are kept for addresses that completed a
	// handshake in the last hour.
	Connections int
	// PerAddress limits connections of one address; 0 does not. Agents of one site
	// often share one address.
	PerAddress int
}

// Servers are bound ports.
type Servers struct {
	log   *slog.Logger
	ports []boundPort
}

type boundPort struct {
	Port
	listener watchedListener
	server   *http.Server
}

// Listen binds all ports or none.
func Listen(ctx context.Context, log *slog.Logger, ports ...Port) (*Servers, error) {
	s := &Servers{log: log}
	most := placesOf(openFiles(), len(ports))
	if most < defaultConnections {
		log.Info("each port takes fewer connections at a time than it could: the process may open few files", "connections", most, "remedy", "raise the limit of open files (ulimit -n, LimitNOFILE)")
	}
	for _, p := range ports {
		certified := p.TLS != nil && p.TLS.ClientAuth == tls.RequireAndVerifyClientCert
		places, streams := finish.Room(certified)
		p.Connections = min(cmp.Or(max(p.Connections, 0), places), most)
		listener, err := bind(ctx, p)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		closing := make(chan struct{})
		server := &http.Server{
			Handler:           finish.Handler(departing(p.Handler)),
			TLSConfig:         p.TLS,
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       requestTimeout,
			WriteTimeout:      requestTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			HTTP2: &http.HTTP2Config{
				MaxConcurrentStreams: streams, MaxReadFrameSize: maxFrame,
				MaxReceiveBufferPerConnection: maxReceiveBuffer, MaxReceiveBufferPerStream: maxStreamBuffer,
				// A peer that is gone, or takes nothing, keeps no connection.
				SendPingTimeout: idleTimeout, PingTimeout: requestTimeout, WriteByteTimeout: requestTimeout,
			},
			ErrorLog:    slog.NewLogLogger(log.With("port", p.Name).Handler(), slog.LevelDebug),
			ConnContext: withConn,
			BaseContext: func(net.Listener) context.Context {
				return context.WithValue(context.Background(), stoppingKey{}, closing)
			},
		}
		server.RegisterOnShutdown(func() { close(closing) }) // long polls end then
		s.ports = append(s.ports, boundPort{Port: p, listener: watchedListener{listener, newAdmission(p.Connections, p.PerAddress, certified, time.Now), &sync.Map{}}, server: server})
	}
	return s, nil
}

// placesOf is how many connections each port may have at a time of a process that
// may open so many files: half are left to the git server, clusters and disk.
func placesOf(files uint64, ports int) int {
	return int(max(min(files/2/uint64(max(ports, 1)), 1<<30), 1)) //nolint:gosec // bounded
}

// openFiles is how many files this process may open at a time.
func openFiles() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32 // unknown
	}
	return limit.Cur
}

func bind(ctx context.Context, p Port) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s on %s: %w", p.Name, p.Address, err)
	}
	if addr, ok := listener.Addr().(*net.TCPAddr); p.TLS == nil && (!ok || !addr.IP.IsLoopback()) {
		err := fmt.Errorf("listen for %s on %s: without TLS only a loopback address is served; use 127.0.0.1 or give a certificate", p.Name, p.Address)
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// Address is where the named port listens, "" when there is none.
func (s *Servers) Address(name string) string {
	for _, p := range s.ports {
		if p.Name == name {
			return p.listener.Addr().String()
		}
	}
	return ""
}

// Drop closes the connections that the named port has, and says how many: whoever
// they are of comes again, and may be sent elsewhere.
func (s *Servers) Drop(name string) int {
	n := 0
	for _, p := range s.ports {
		if p.Name == name {
			n += p.listener.drop()
		}
	}
	return n
}

// Close frees ports that were bound and never run.
func (s *Servers) Close() error {
	var errs []error
	for _, p := range s.ports {
		if err := p.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Run serves until the context ends or a port fails. It then takes no new
// requests and lets those under way be answered for at most grace.
func (s *Servers) Run(ctx context.Context, grace time.Duration) error {
	failed := make(chan error, len(s.ports))
	for _, p := range s.ports {
		s.log.Info("listening", "port", p.Name, "address", p.listener.Addr().String(), "tls", p.TLS != nil)
		go func() { failed <- p.serve() }()
	}
	var first error
	running := len(s.ports)
	select {
	case <-ctx.Done():
	case first = <-failed:
		running--
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	stopped := make(chan error, len(s.ports))
	for _, p := range s.ports {
		go func() { stopped <- p.stop(stop) }()
	}
	errs := []error{first}
	for range s.ports {
		errs = append(errs, <-stopped)
	}
	for range running {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

func (p boundPort) serve() error {
	err := error(nil)
	if p.TLS != nil {
		err = p.server.ServeTLS(p.listener, "", "")
	} else {
		err = p.server.Serve(p.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", p.Name, err)
}

func (p boundPort) stop(ctx context.Context) error {
	if err := p.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop serving %s: %w", p.Name, err), p.server.Close())
	}
	return nil
}
