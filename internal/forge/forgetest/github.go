package forgetest

import (
	"fmt"
	"net/http"
	"testing"

	sdk "github.com/google/go-github/v88/github"
)

// GitHub is a FAKE of GitHub's API for the repository acme/fleet.
func GitHub(t *testing.T) *Fake {
	return newFake(t, githubRoutes, func(h http.Header) bool { return h.Get("Authorization") == "Bearer "+Token })
}

func githubRoutes(f *Fake, mux *http.ServeMux) {
	const repo = "/repos/acme/fleet"
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, &sdk.User{Login: sdk.Ptr(Me)})
	})
	mux.HandleFunc("GET "+repo+"/pulls", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		var list []*sdk.PullRequest
		for _, p := range f.pulls {
			if p.matches(q.Get("state") == "open", q.Get("base"), q.Get("head")) {
				list = append(list, p.github())
			}
		}
		githubPage(w, r, list)
	})
	mux.HandleFunc("GET "+repo+"/commits/{sha}/pulls", func(w http.ResponseWriter, r *http.Request) {
		list := []*sdk.PullRequest{}
		for _, p := range f.pulls {
			if sha := r.PathValue("sha"); p.MergeCommit == sha || p.Head == sha {
				list = append(list, p.github())
			}
		}
		githubPage(w, r, list)
	})
	mux.HandleFunc("POST "+repo+"/pulls", func(w http.ResponseWriter, r *http.Request) {
		m := body(r)
		answer(w, http.StatusCreated, f.add(Pull{Title: text(m, "title"), Body: text(m, "body"), Branch: text(m, "head"), Base: text(m, "base"), Author: Me}).github())
	})
	mux.HandleFunc("POST "+repo+"/statuses/{sha}", func(w http.ResponseWriter, r *http.Request) {
		m, sha := body(r), r.PathValue("sha")
		f.statuses[sha] = append(f.statuses[sha], Status{text(m, "context"), text(m, "state"), text(m, "description")})
		answer(w, http.StatusCreated, &sdk.RepoStatus{State: sdk.Ptr(text(m, "state"))})
	})
	mux.HandleFunc("GET "+repo+"/collaborators/{user}/permission", func(w http.ResponseWriter, r *http.Request) {
		level := "read" // as everybody may, where the repository is public
		if i := f.person(r.PathValue("user")); i >= 0 {
			level = f.people[i].Access
		}
		answer(w, http.StatusOK, &sdk.RepositoryPermissionLevel{Permission: &level})
	})
	githubPull(f, mux, repo)
	githubComments(f, mux, repo)
}

func githubPull(f *Fake, mux *http.ServeMux, repo string) {
	mux.HandleFunc("GET "+repo+"/pulls/{n}", func(w http.ResponseWriter, r *http.Request) {
		if p := f.pull(w, r); p != nil {
			answer(w, http.StatusOK, p.github())
		}
	})
	mux.HandleFunc("PATCH "+repo+"/pulls/{n}", func(w http.ResponseWriter, r *http.Request) {
		p := f.pull(w, r)
		if p == nil {
			return
		}
		m := body(r)
		if m["title"] != nil {
			p.Title, p.Body = text(m, "title"), text(m, "body")
		}
		p.Closed = p.Closed || text(m, "state") == "closed"
		answer(w, http.StatusOK, p.github())
	})
	mux.HandleFunc("PUT "+repo+"/pulls/{n}/merge", func(w http.ResponseWriter, r *http.Request) {
		p := f.pull(w, r)
		if p == nil {
			return
		}
		switch m := body(r); {
		case text(m, "sha") != p.Head:
			refuse(w, http.StatusConflict, "Head branch was modified. Review and try the merge again.")
		case p.NotReady:
			refuse(w, http.StatusMethodNotAllowed, "Required status check \"ci\" is expected.")
		default:
			p.Merged, p.MergeCommit = true, "merge-of-"+p.Head
			answer(w, http.StatusOK, &sdk.PullRequestMergeResult{Merged: sdk.Ptr(true)})
		}
	})
	mux.HandleFunc("GET "+repo+"/pulls/{n}/reviews", func(w http.ResponseWriter, r *http.Request) {
		p := f.pull(w, r)
		if p == nil {
			return
		}
		list := []*sdk.PullRequestReview{}
		for _, a := range p.Approvers {
			list = append(list,
				&sdk.PullRequestReview{User: &sdk.User{Login: sdk.Ptr(a)}, State: sdk.Ptr("CHANGES_REQUESTED"), CommitID: &p.Head},
				&sdk.PullRequestReview{User: &sdk.User{Login: sdk.Ptr(a)}, State: sdk.Ptr("APPROVED"), CommitID: &p.Head},
				&sdk.PullRequestReview{User: &sdk.User{Login: sdk.Ptr(a)}, State: sdk.Ptr("COMMENTED"), CommitID: &p.Head})
		}
		githubPage(w, r, list)
	})
}

func githubComments(f *Fake, mux *http.ServeMux, repo string) {
	mux.HandleFunc("GET "+repo+"/issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		if p := f.pull(w, r); p != nil {
			list := []*sdk.IssueComment{}
			for _, c := range f.of(p.Number, false) {
				written, changed := c.times()
				kind := "User"
				if i := f.person(c.Author); i >= 0 && f.people[i].Bot {
					kind = "Bot"
				}
				list = append(list, &sdk.IssueComment{
					ID: &c.ID, Body: &c.Body, User: &sdk.User{Login: &c.Author, Type: &kind},
					CreatedAt: &sdk.Timestamp{Time: written}, UpdatedAt: &sdk.Timestamp{Time: changed},
				})
			}
			githubPage(w, r, list)
		}
	})
	mux.HandleFunc("POST "+repo+"/issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		if p := f.pull(w, r); p != nil {
			answer(w, http.StatusCreated, &sdk.IssueComment{ID: &f.say(Comment{Pull: p.Number, Author: Me, Body: text(body(r), "body")}).ID})
		}
	})
	mux.HandleFunc("PATCH "+repo+"/issues/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		if c := f.comment(w, r); c != nil {
			c.Body = text(body(r), "body")
			answer(w, http.StatusOK, &sdk.IssueComment{ID: &c.ID})
		}
	})
	mux.HandleFunc("GET "+repo+"/pulls/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		if p := f.pull(w, r); p != nil {
			list := []*sdk.PullRequestComment{}
			for _, c := range f.of(p.Number, true) {
				list = append(list, &sdk.PullRequestComment{ID: &c.ID, Body: &c.Body, Path: &c.Path, Line: &c.Line, User: &sdk.User{Login: &c.Author}})
			}
			githubPage(w, r, list)
		}
	})
	mux.HandleFunc("POST "+repo+"/pulls/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		p := f.pull(w, r)
		if p == nil {
			return
		}
		m := body(r)
		if !inDiff(number(m, "line")) || text(m, "commit_id") != p.Head || text(m, "side") != "RIGHT" {
			refuse(w, http.StatusUnprocessableEntity, "pull_request_review_thread.line must be part of the diff")
			return
		}
		c := f.say(Comment{Pull: p.Number, Author: Me, Body: text(m, "body"), Path: text(m, "path"), Line: number(m, "line")})
		answer(w, http.StatusCreated, &sdk.PullRequestComment{ID: &c.ID})
	})
	mux.HandleFunc("DELETE "+repo+"/pulls/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		if c := f.comment(w, r); c != nil {
			f.remove(c.ID)
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

func githubPage[T any](w http.ResponseWriter, r *http.Request, list []T) {
	part, next := page(r, list)
	if next > 0 {
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%d>; rel="next", <http://%[1]s%[2]s?page=%[4]d>; rel="last"`, r.Host, r.URL.Path, next, pages(list)))
	}
	answer(w, http.StatusOK, part)
}

func (p *Pull) github() *sdk.PullRequest {
	base := &sdk.Repository{ID: sdk.Ptr(int64(1))}
	head := base
	if p.Fork {
		head = &sdk.Repository{ID: sdk.Ptr(int64(2))}
	}
	out := &sdk.PullRequest{
		Number: sdk.Ptr(int(p.Number)), Title: &p.Title, State: sdk.Ptr("open"), User: &sdk.User{Login: &p.Author},
		Head: &sdk.PullRequestBranch{Ref: &p.Branch, SHA: &p.Head, Repo: head}, Base: &sdk.PullRequestBranch{Ref: &p.Base, Repo: base},
	}
	if p.Merged || p.Closed {
		out.State = sdk.Ptr("closed")
	}
	if p.Merged { // lists have no field "merged"
		out.MergedAt, out.MergeCommitSHA = &sdk.Timestamp{Time: when}, &p.MergeCommit
	}
	return out
}
