// Package redirects has clients of API servers follow no redirect: Kubernetes' client shows
// its token to wherever it is sent, over http too, and the target is the word of whoever
// answered, which may be a server behind the API server or a proxy before it.
//
// Callers: package access of delivery, package replies of the agent, and whoever reaches the
// daemon's own cluster (daemon, doctor, kubeconfig). It keeps nothing.
package redirects

import (
	"errors"
	"net/http"
)

// Refuse makes a redirect an error of the request that it answers. It is for the
// WrapTransport of a rest.Config.
func Refuse(next http.RoundTripper) http.RoundTripper { return staying{next} }

type staying struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s staying) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if err != nil || answer.Header.Get("Location") == "" || answer.StatusCode/100 != 3 {
		return answer, err
	}
	_ = answer.Body.Close()
	return nil, errors.New("the cluster answers with a redirect, which is not followed: name the API server by its own address")
}

// WrappedRoundTripper lets the library see through.
func (s staying) WrappedRoundTripper() http.RoundTripper { return s.next }
