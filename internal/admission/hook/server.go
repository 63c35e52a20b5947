package hook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/internal/admission/fair"
	"github.com/fleetbroker/fleetbroker/internal/admission/rule"
)

// Paths of the webhook, as the configuration of the install base names them.
const (
	PathPods     = "/pods"
	PathRequests = "/resourcerequests"
)

const (
	// maxReview bounds a review: API servers keep objects of 1.5 MiB at most, and an update
	// has its object twice.
	maxReview = 3 << 20
	// maxBodies are held at once, ownBodies of them of one address, and maxReviews of them
	// answered; others, at most maxWaiting of an address, wait for a place until their time
	// is over.
	maxBodies, ownBodies, maxReviews, maxWaiting = 16, 12, 4, 256
	// promptBody is how long a body may take to come while others wait: API servers are near.
	promptBody = 100 * time.Millisecond
	// maxConnections are open at once, maxStreams of HTTP/2 on each, with headers of
	// maxHeaders.
	maxConnections, maxStreams, maxHeaders = 128, 32, 8 << 10
	// answerTime is below the configuration's timeoutSeconds.
	answerTime = 4 * time.Second
	// stopTime is how long answers may take once the agent ends.
	stopTime = 5 * time.Second
)

// Server answers reviews.
type Server struct {
	// Address to listen on.
	Address string
	// Client reads namespaces, one for each review of a pod: bound its rate.
	Client kubernetes.Interface
	// Certificate is what it shows.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCA is a file with the authorities, in PEM, of one of which a caller has to show a
	// certificate. It is read at each connection. Empty: whoever reaches the port is answered.
	ClientCA string
	// Log of what is refused.
	Log *slog.Logger
}

// NeedLeaderElection says that every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends. It is a Runnable of controller-runtime.
func (s *Server) Start(ctx context.Context) error {
	line, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen for admission reviews: %w", err)
	}
	return s.Serve(ctx, line)
}

// Serve is Start on a listener, which it closes.
func (s *Server) Serve(ctx context.Context, line net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: answerTime, ReadTimeout: answerTime, WriteTimeout: 2 * answerTime, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeaders, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		TLSConfig: s.config(),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: 64 << 10, MaxReceiveBufferPerStream: 64 << 10},
	}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(fair.Listen(line, maxConnections), "", "") }()
	s.Log.Info("webhook serves", "address", line.Addr().String())
	select {
	case err := <-done:
		return fmt.Errorf("serve admission reviews: %w", err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return server.Shutdown(ending)
}

// config is that of TLS.
func (s *Server) config() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.Certificate, NextProtos: []string{"h2", "http/1.1"}}
	if s.ClientCA == "" {
		return c
	}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := poolOf(s.ClientCA)
		if err != nil {
			s.Log.Error("read the webhook's client authorities", "error", err)
			return nil, err
		}
		own := c.Clone()
		own.GetConfigForClient, own.ClientAuth, own.ClientCAs = nil, tls.RequireAndVerifyClientCert, pool
		return own, nil
	}
	return c
}

// poolOf reads authorities.
func poolOf(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

// Handler answers reviews at PathPods and PathRequests, maxReviews at once.
func (s *Server) Handler() http.Handler {
	p := places{bodies: fair.NewPlaces(maxBodies, ownBodies, maxWaiting, promptBody), reviews: make(chan struct{}, maxReviews)}
	mux := http.NewServeMux()
	mux.Handle("POST "+PathPods, s.answer(p, s.pods))
	mux.Handle("POST "+PathRequests, s.answer(p, requests))
	return mux
}

// places are those of reviews: whoever reaches the port may ask, so what it costs at once
// is bounded.
type places struct {
	bodies  *fair.Places
	reviews chan struct{}
}

// take waits for a place until the context ends.
func take(ctx context.Context, of chan struct{}) bool {
	select {
	case of <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// change says how an object is to be changed.
type change func(context.Context, *request) ([]rule.Operation, error)

func (s *Server) answer(p places, of change) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		// A body that cannot be interrupted is one in memory, which is there at once.
		cutOff := func() { _ = http.NewResponseController(w).SetReadDeadline(time.Now()) }
		place := p.bodies.Take(ctx, fair.AddressOf(r.RemoteAddr), cutOff)
		if place == nil {
			busy(w)
			return
		}
		defer place.Leave()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
		if err != nil {
			http.Error(w, "the review is cut off or too large", http.StatusRequestEntityTooLarge)
			return
		}
		if !place.Settle() || !take(ctx, p.reviews) {
			busy(w)
			return
		}
		defer func() { <-p.reviews }()
		var review review
		if err := json.Unmarshal(body, &review); err != nil || !review.ours() {
			http.Error(w, "the body is no AdmissionReview of admission.k8s.io/v1 with a request", http.StatusBadRequest)
			return
		}
		answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		operations, err := of(ctx, review.Request)
		if err == nil && len(operations) > 0 {
			jsonPatch := admissionv1.PatchTypeJSONPatch
			answer.PatchType = &jsonPatch
			answer.Patch, err = json.Marshal(operations)
		}
		if err != nil {
			s.Log.Warn("admission refused", "namespace", review.Request.Namespace, "resource", review.Request.Resource.Resource, "error", err)
			answer = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
				Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "fleet-agent: " + err.Error(),
			}}
		}
		w.Header().Set("Content-Type", "application/json")
		// Who asked is gone where this fails.
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: answer})
	})
}

// busy has the API server ask again.
func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "the agent answers too many reviews at once", http.StatusTooManyRequests)
}

// pods gives a new pod the tolerations of its namespace's intents.
func (s *Server) pods(ctx context.Context, r *request) ([]rule.Operation, error) {
	if r.Operation != admissionv1.Create || r.Resource.Resource != "pods" || r.SubResource != "" {
		return nil, nil
	}
	pod, err := readPod(r.Object)
	if err != nil {
		return nil, fmt.Errorf("the pod cannot be read: %w", err)
	}
	namespace, err := s.Client.CoreV1().Namespaces().Get(ctx, r.Namespace, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", r.Namespace, err)
	}
	return rule.Tolerations(namespace, pod)
}

// requests writes down who made a ResourceRequest.
func requests(_ context.Context, r *request) ([]rule.Operation, error) {
	if r.Resource.Resource != "resourcerequests" || r.SubResource != "" {
		return nil, nil
	}
	object, err := readAnnotations(r.Object)
	if err != nil {
		return nil, fmt.Errorf("the ResourceRequest cannot be read: %w", err)
	}
	switch r.Operation {
	case admissionv1.Create:
		return rule.Owner(r.UserInfo.Username, object, nil), nil
	case admissionv1.Update:
		old, err := readAnnotations(r.OldObject)
		if err != nil {
			return nil, fmt.Errorf("the former ResourceRequest cannot be read: %w", err)
		}
		return rule.Owner("", object, old), nil
	default:
		return nil, nil
	}
}
