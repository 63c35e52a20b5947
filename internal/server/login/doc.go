// Package login lets people into the dashboard by an OpenID Connect provider: the
// authorization code flow with PKCE, and a session in a sealed cookie.
//
//	login.go      the three addresses: /ui/login, /ui/callback, /ui/logout
//	provider.go   what the provider says, and what of it is believed
//	session.go    cookies: sealed, bounded in life and size
//	flags.go      the daemon's flags
//
// Invariants:
//   - A session exists only after an ID token of the configured issuer, for the configured
//     client, signed by a key of that issuer, not expired, with the nonce of the very
//     browser that brings the code, and with the verifier that only this program knows.
//   - Cookies are __Host- ones: Secure, HttpOnly, SameSite=Lax, of this host alone. What
//     they hold is sealed (AES-GCM) under a key of the daemon, and names issuer and client.
//   - A session ends with its life, whatever happens, and on this replica with its logout.
//   - Nothing of the provider's tokens is kept, logged or shown.
//   - A group that begins with "system:" is Kubernetes' own: none of the provider's counts
//     as one.
//   - The provider is a network peer like others: bounded answers, deadlines, no redirects.
//     Without it nobody new comes in, and everything else goes on.
//
// internal/server asks it who a request is of (Session) and leaves its addresses to it
// (ServeHTTP); the cli makes it. All of it is safe for concurrent use.
package login
