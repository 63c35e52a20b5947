// Package gitea is Gitea's and Forgejo's API as a forge.Forge, through
// code.gitea.io/sdk/gitea.
//
// Comments on lines are one review of ours, replaced as a whole: the API
// deletes reviews and no single comment. It knows the pull request of a merge,
// and not of the commits that a merge brought.
//
// The token needs the scopes write:repository, write:issue and read:user.
// Everything else is said in package forge.
package gitea
