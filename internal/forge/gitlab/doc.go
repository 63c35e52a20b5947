// Package gitlab is GitLab's API as a forge.Forge, through
// gitlab-org/api/client-go. A pull request is a merge request there, its number
// the project's own (IID).
//
// The token is a project access token with the role Developer (Maintainer to
// merge into a protected branch) and the scope api. Everything else is said in
// package forge.
package gitlab
