// Package forge is the little that the daemon asks of the place where the
// fleet repo is hosted: pull requests, their comments, statuses and merges.
//
//	forge.Forge ◄── github   github.com and Enterprise, by google/go-github
//	            ◄── gitlab   gitlab.com and self-managed, by gitlab-org/api/client-go
//	            ◄── gitea    Gitea and Forgejo, by code.gitea.io/sdk/gitea
//
// forges.Open picks one by its configuration. This package holds the
// interface, what all of them share (paging, errors in one vocabulary), and
// the one HTTP transport under the three SDKs.
//
// # Invariants
//
//   - A token is read from its file at each request, so that it can be rotated.
//     It is sent to the API's own host alone, and stands in no error, no log
//     and no URL.
//   - Every answer is bounded, every list is read to its end or says that it was
//     cut.
//   - A limit (Retry-After, X-RateLimit-Reset, RateLimit-Reset) is obeyed by all
//     callers together: short ones are waited for, during long ones nothing is
//     sent and *Limited says until when. An outage is asked again a few times
//     where asking twice does no harm, then it is ErrUnavailable.
//   - Only comments that we wrote ourselves are changed or deleted: a marker in
//     another account's comment means nothing.
//   - What people wrote (titles, branch names, logins) is data. Nothing here
//     acts on it.
//
// # Who calls it
//
// The cli opens one for the daemon; the loops that comment on pull requests
// and that write back through one use it. It imports no other room.
//
// # Concurrency
//
// A Forge is safe for concurrent use.
package forge
