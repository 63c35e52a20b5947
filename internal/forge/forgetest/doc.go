// Package forgetest has what tests of forges share: FAKES of GitHub's and
// GitLab's API, and Conform, what every forge.Forge must do, which runs against
// the fakes and against a real Gitea (test/e2e/forge).
//
// The fakes answer with the SDKs' own types and prove that our client and the
// SDK agree with each other about requests, pages and statuses. They prove
// nothing about the real services: nobody here can reach those. What they
// refuse and how is taken from the services' documentation: docs.github.com
// "REST API", docs.gitlab.com "REST API".
//
// Tests call it. A Fake is safe for concurrent use.
package forgetest
