package login

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Flags say which provider people sign in with.
type Flags struct {
	issuer, client, secretFile, redirect string
	scopes, everything, allowed          []string
	name, groups, prefix                 string
	caFile, keyFile                      string
	life                                 time.Duration
}

// Register adds the flags.
func (f *Flags) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.issuer, "oidc-issuer", "", "URL of the OpenID Connect provider that people sign in to the dashboard with; empty for none")
	fs.StringVar(&f.client, "oidc-client-id", "", "id of this daemon at --oidc-issuer")
	fs.StringVar(&f.secretFile, "oidc-client-secret-file", "", "file with the secret of --oidc-client-id, read for each login; empty for a public client")
	fs.StringVar(&f.redirect, "oidc-redirect-url", "", "where the provider sends browsers back to: https://HOST"+CallbackPath+" of the operators' port as people reach it")
	fs.StringSliceVar(&f.scopes, "oidc-scopes", []string{"openid", "profile", "email"}, "scopes to ask for; many providers give groups only with one more, such as groups")
	fs.StringVar(&f.name, "oidc-name-claim", "email", "claim with the name to show of an account; without it the account's subject is shown")
	fs.StringVar(&f.groups, "oidc-groups-claim", "groups", "claim with an account's groups, of the ID token or of the provider's answer about the account")
	fs.StringVar(&f.prefix, "oidc-groups-prefix", "", "put before each group, as in spec.members of tenants, so that none is taken for a group of the daemon's cluster")
	fs.StringSliceVar(&f.everything, "oidc-operator-groups", nil, "groups, with their prefix, whose members see every tenant on the dashboard")
	fs.StringSliceVar(&f.allowed, "oidc-allowed-groups", nil, "groups, with their prefix, whose members may sign in, besides those of --oidc-operator-groups; none lets every account of the provider in")
	fs.StringVar(&f.caFile, "oidc-ca-file", "", "certificate authorities of the provider, in place of the system's")
	fs.DurationVar(&f.life, "oidc-session-life", 8*time.Hour, "how long a session lasts, at most 24h; groups are asked for at its start")
	fs.StringVar(&f.keyFile, "oidc-session-key-file", "", "file with at least 32 random bytes that sessions are sealed with, the same for all replicas; empty makes a key that ends with the process")
}

// Set reports whether people can sign in.
func (f *Flags) Set() bool { return f.issuer != "" }

// maxSecret bounds the files that hold secrets.
const maxSecret = 64 << 10

func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // has the path; the caller names the flag
	}
	if info.Size() > maxSecret {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", path, info.Size(), maxSecret)
	}
	return os.ReadFile(path) //nolint:wrapcheck // as above
}

// Open makes the sign-in; nil without a provider. o has what flags do not say. Errors are
// mistakes of the command line.
func (f *Flags) Open(o Options) (*Login, error) {
	if !f.Set() {
		return nil, nil
	}
	o.Issuer, o.ClientID, o.RedirectURL, o.Scopes, o.Everything, o.Allowed = f.issuer, f.client, f.redirect, f.scopes, f.everything, f.allowed
	o.NameClaim, o.GroupsClaim, o.GroupsPrefix, o.Life = f.name, f.groups, f.prefix, f.life
	if f.client == "" || f.redirect == "" {
		return nil, errors.New("--oidc-issuer needs --oidc-client-id and --oidc-redirect-url")
	}
	if f.secretFile != "" {
		o.Secret = func() (string, error) {
			b, err := readSecret(f.secretFile)
			if err != nil {
				return "", fmt.Errorf("read --oidc-client-secret-file: %w", err)
			}
			secret := strings.TrimRight(string(b), "\r\n")
			if secret == "" {
				return "", fmt.Errorf("read --oidc-client-secret-file: %s is empty", f.secretFile)
			}
			return secret, nil
		}
		if _, err := o.Secret(); err != nil {
			return nil, err
		}
	}
	if f.keyFile != "" {
		key, err := readSecret(f.keyFile)
		if err != nil {
			return nil, fmt.Errorf("read --oidc-session-key-file: %w", err)
		}
		if o.Key = bytes.TrimSpace(key); len(o.Key) < 32 {
			return nil, fmt.Errorf("--oidc-session-key-file: %s has %d bytes; make one with `openssl rand -base64 48`", f.keyFile, len(o.Key))
		}
	}
	if f.caFile != "" {
		pem, err := readSecret(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("read --oidc-ca-file: %w", err)
		}
		o.Roots = x509.NewCertPool()
		if !o.Roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--oidc-ca-file: %s has no certificate in PEM form", f.caFile)
		}
	}
	l, err := New(o)
	if err != nil {
		return nil, fmt.Errorf("sign-in by --oidc-issuer: %w", err)
	}
	return l, nil
}
