// Package forge runs the real daemon against a real Gitea: pull requests,
// statuses, comments, webhooks, branch protection. No cluster runs: what is
// looked at ends with the ledger. The client alone is held to what every forge
// does (forgetest.Conform).
package forge
