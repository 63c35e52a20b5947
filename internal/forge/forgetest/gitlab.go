package forgetest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"testing"

	sdk "gitlab.com/gitlab-org/api/client-go"
)

// GitLab is a FAKE of GitLab's API for the project acme/fleet.
func GitLab(t *testing.T) *Fake {
	return newFake(t, gitlabRoutes, func(h http.Header) bool { return h.Get("PRIVATE-TOKEN") == Token })
}

func gitlabRoutes(f *Fake, mux *http.ServeMux) {
	const project = "/api/v4/projects/acme%2Ffleet"
	mux.HandleFunc("GET /api/v4/user", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, &sdk.User{Username: Me})
	})
	mux.HandleFunc("GET "+project+"/merge_requests", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		list := []*sdk.BasicMergeRequest{}
		for _, p := range f.pulls {
			if p.matches(q.Get("state") == "opened", q.Get("target_branch"), q.Get("source_branch")) {
				list = append(list, &p.gitlab().BasicMergeRequest)
			}
		}
		gitlabPage(w, r, list)
	})
	mux.HandleFunc("GET "+project+"/repository/commits/{sha}/merge_requests", func(w http.ResponseWriter, r *http.Request) {
		list := []*sdk.BasicMergeRequest{}
		for _, p := range f.pulls {
			if sha := r.PathValue("sha"); p.MergeCommit == sha || p.Head == sha {
				list = append(list, &p.gitlab().BasicMergeRequest)
			}
		}
		answer(w, http.StatusOK, list)
	})
	mux.HandleFunc("POST "+project+"/merge_requests", func(w http.ResponseWriter, r *http.Request) {
		m := body(r)
		answer(w, http.StatusCreated, f.add(Pull{Title: text(m, "title"), Body: text(m, "description"), Branch: text(m, "source_branch"), Base: text(m, "target_branch"), Author: Me}).gitlab())
	})
	mux.HandleFunc("POST "+project+"/statuses/{sha}", func(w http.ResponseWriter, r *http.Request) {
		m, sha := body(r), r.PathValue("sha")
		if list := f.statuses[sha]; len(list) > 0 && list[len(list)-1].State == text(m, "state") && text(m, "state") == "pending" {
			refuse(w, http.StatusBadRequest, "Cannot transition status via :enqueue from :pending")
			return
		}
		f.statuses[sha] = append(f.statuses[sha], Status{text(m, "name"), text(m, "state"), text(m, "description")})
		answer(w, http.StatusCreated, &sdk.CommitStatus{Status: text(m, "state")})
	})
	mux.HandleFunc("GET "+project+"/members/all/{id}", func(w http.ResponseWriter, r *http.Request) {
		if p := f.user(w, r); p != nil {
			level, err := strconv.Atoi(p.Access)
			if err != nil {
				level = int(sdk.DeveloperPermissions)
			}
			answer(w, http.StatusOK, &sdk.ProjectMember{Username: p.Login, AccessLevel: sdk.AccessLevelValue(level), State: cmp.Or(p.State, "active")})
		}
	})
	mux.HandleFunc("GET /api/v4/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		if p := f.user(w, r); p != nil {
			answer(w, http.StatusOK, &sdk.User{Username: p.Login, Bot: p.Bot})
		}
	})
	gitlabPull(f, mux, project)
	gitlabComments(f, mux, project)
}

func gitlabPull(f *Fake, mux *http.ServeMux, project string) {
	mux.HandleFunc("GET "+project+"/merge_requests/{n}", func(w http.ResponseWriter, r *http.Request) {
		if p := f.pull(w, r); p != nil {
			answer(w, http.StatusOK, p.gitlab())
		}
	})
	mux.HandleFunc("PUT "+project+"/merge_requests/{n}", func(w http.ResponseWriter, r *http.Request) {
		p := f.pull(w, r)
		if p == nil {
			return
		}
		m := body(r)
		if m["title"] != nil {
			p.Title, p.Body = text(m, "title"), text(m, "description")
		}
		p.Closed = p.Closed || text(m, "state_event") == "close"
		answer(w, http.StatusOK, p.gitlab())
	})
	mux.HandleFunc("PUT "+project+"/merge_requests/{n}/merge", func(w http.ResponseWriter, r *http.Request) {
		p := f.pull(w, r)
		if p == nil {
			return
		}
		switch m := body(r); {
		case text(m, "sha") != p.Head:
			refuse(w, http.StatusConflict, "SHA does not match HEAD of source branch")
		case p.NotReady:
			refuse(w, http.StatusMethodNotAllowed, "405 Method Not Allowed: Pipeline must succeed")
		default:
			p.Merged, p.MergeCommit = true, "merge-of-"+p.Head
			answer(w, http.StatusOK, p.gitlab())
		}
	})
	mux.HandleFunc("GET "+project+"/merge_requests/{n}/approvals", func(w http.ResponseWriter, r *http.Request) {
		p := f.pull(w, r)
		if p == nil {
			return
		}
		out := &sdk.MergeRequestApprovals{}
		for _, a := range p.Approvers {
			out.ApprovedBy = append(out.ApprovedBy, &sdk.MergeRequestApproverUser{User: &sdk.BasicUser{Username: a}})
		}
		answer(w, http.StatusOK, out)
	})
}

func gitlabComments(f *Fake, mux *http.ServeMux, project string) {
	mux.HandleFunc("GET "+project+"/merge_requests/{n}/notes", func(w http.ResponseWriter, r *http.Request) {
		if p := f.pull(w, r); p != nil {
			list := []*sdk.Note{}
			for _, c := range f.of(p.Number, false) {
				written, changed := c.times()
				list = append(list, &sdk.Note{
					ID: c.ID, Body: c.Body, Author: sdk.NoteAuthor{ID: int64(f.person(c.Author) + 1), Username: c.Author},
					CreatedAt: &written, UpdatedAt: &changed,
				})
			}
			if r.URL.Query().Get("sort") == "desc" {
				slices.Reverse(list)
			}
			gitlabPage(w, r, list)
		}
	})
	mux.HandleFunc("POST "+project+"/merge_requests/{n}/notes", func(w http.ResponseWriter, r *http.Request) {
		if p := f.pull(w, r); p != nil {
			answer(w, http.StatusCreated, &sdk.Note{ID: f.say(Comment{Pull: p.Number, Author: Me, Body: text(body(r), "body")}).ID})
		}
	})
	mux.HandleFunc("PUT "+project+"/merge_requests/{n}/notes/{id}", func(w http.ResponseWriter, r *http.Request) {
		if c := f.comment(w, r); c != nil {
			c.Body = text(body(r), "body")
			answer(w, http.StatusOK, &sdk.Note{ID: c.ID})
		}
	})
	mux.HandleFunc("GET "+project+"/merge_requests/{n}/discussions", func(w http.ResponseWriter, r *http.Request) {
		if p := f.pull(w, r); p != nil {
			list := []*sdk.Discussion{}
			for _, c := range f.of(p.Number, true) {
				list = append(list, &sdk.Discussion{ID: "d" + strconv.FormatInt(c.ID, 10), Notes: []*sdk.Note{{
					ID: c.ID, Body: c.Body, Author: sdk.NoteAuthor{Username: c.Author}, Position: &sdk.NotePosition{NewPath: c.Path, NewLine: int64(c.Line)},
				}}})
			}
			gitlabPage(w, r, list)
		}
	})
	mux.HandleFunc("POST "+project+"/merge_requests/{n}/discussions", func(w http.ResponseWriter, r *http.Request) {
		p := f.pull(w, r)
		if p == nil {
			return
		}
		m := body(r)
		at, _ := m["position"].(map[string]any)
		if !inDiff(number(at, "new_line")) || text(at, "head_sha") != p.Head || text(at, "base_sha") == "" {
			refuse(w, http.StatusBadRequest, "400 Bad request - Note {:line_code=>[\"can't be blank\"]}")
			return
		}
		c := f.say(Comment{Pull: p.Number, Author: Me, Body: text(m, "body"), Path: text(at, "new_path"), Line: number(at, "new_line")})
		answer(w, http.StatusCreated, &sdk.Discussion{ID: "d" + strconv.FormatInt(c.ID, 10)})
	})
	mux.HandleFunc("DELETE "+project+"/merge_requests/{n}/discussions/{d}/notes/{id}", func(w http.ResponseWriter, r *http.Request) {
		if c := f.comment(w, r); c != nil {
			f.remove(c.ID)
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

// user is the one that a request names by its number, from 1.
func (f *Fake) user(w http.ResponseWriter, r *http.Request) *Person {
	id, _ := strconv.Atoi(r.PathValue("id"))
	if id < 1 || id > len(f.people) {
		refuse(w, http.StatusNotFound, "404 Not found")
		return nil
	}
	return &f.people[id-1]
}

func gitlabPage[T any](w http.ResponseWriter, r *http.Request, list []T) {
	part, next := page(r, list)
	if next > 0 {
		w.Header().Set("X-Next-Page", strconv.Itoa(next))
	}
	answer(w, http.StatusOK, part)
}

func (p *Pull) gitlab() *sdk.MergeRequest {
	out := &sdk.MergeRequest{
		BasicMergeRequest: sdk.BasicMergeRequest{
			IID: p.Number, Title: p.Title, Description: p.Body, State: "opened", SourceBranch: p.Branch, TargetBranch: p.Base, SHA: p.Head,
			Author: &sdk.BasicUser{Username: p.Author}, SourceProjectID: 1, TargetProjectID: 1,
		},
		DiffRefs: sdk.MergeRequestDiffRefs{BaseSha: "base", StartSha: "start", HeadSha: p.Head},
	}
	if p.Fork {
		out.SourceProjectID = 2
	}
	switch {
	case p.Merged:
		at := when
		out.State, out.MergeCommitSHA, out.MergedAt = "merged", p.MergeCommit, &at
	case p.Closed:
		out.State = "closed"
	}
	return out
}
