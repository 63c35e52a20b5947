// Package githubapp lets the daemon reach its repository and its forge as a GitHub App, in
// place of a user's token.
//
//	key file, app id, installation id ─► Tokens ─► git over https (user x-access-token)
//	                                         └───► the forge's API
//
// Invariants:
//   - A token is asked for when it is needed and the last one has less than a minute to go
//     (an installation's token lives for an hour), never twice at once. Meanwhile, and where
//     it fails, the last one serves until it expires. Who is refused asks again after pause.
//   - A token that the forge or git does not take is forgotten (Answer).
//   - Of an answer no more than maxAnswer is read, and nothing taken but a token that expires
//     within maxLife.
//   - The key is read again when a token is asked for: a new file is in force then.
//   - Neither key nor token is in an error or a log.
//
// Package cli opens it, gitrepo and forge read tokens through Tokens.Read where they would
// read a file. Safe for concurrent use.
package githubapp
