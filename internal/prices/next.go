package prices

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Next is the address of the page after the one at an address: by a link, which stays on the
// same server and has no credentials, or by Google's page token.
func Next(at, next string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", errors.New("it has no address that can be read")
	}
	if !strings.Contains(next, "://") {
		q := u.Query()
		q.Set("pageToken", next)
		u.RawQuery = q.Encode()
		return u.String(), nil
	}
	to, err := url.Parse(next)
	switch {
	case err != nil:
		return "", errors.New("the address of the next one cannot be read: get the pages one by one, each with --from")
	case to.User != nil:
		return "", fmt.Errorf("the address of the next one, on %s, has credentials, which are not sent: get the pages one by one, each with --from", to.Host)
	case origin(to) != origin(u):
		return "", fmt.Errorf("the next one is at %q, on another host or port, which is not asked: where that is right, give its address with --from", to.Scheme+"://"+to.Host)
	}
	return next, nil
}

// origin is the server of an address, with its port: Azure writes the :443 of https.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
