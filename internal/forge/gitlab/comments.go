package gitlab

import (
	"context"
	"fmt"
	"net/http"

	sdk "gitlab.com/gitlab-org/api/client-go"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

func (g *GitLab) me(ctx context.Context) (string, error) {
	return g.self.Login(ctx, g.config, func(ctx context.Context) (string, error) {
		u, resp, err := g.client.Users.CurrentUser(sdk.WithContext(ctx))
		if err != nil {
			return "", wrap("ask who the token belongs to", resp, err)
		}
		return forge.Answered(u).Username, nil
	})
}

// Named implements forge.Forge. Developers may write, reporters may not; tokens
// of projects and groups and service accounts are users marked as bots.
func (g *GitLab) Named(ctx context.Context, number int64, head string) (forge.Naming, error) {
	me, err := g.me(ctx)
	if err != nil {
		return forge.Naming{}, err
	}
	list, requests, err := forge.Newest(g.notes(ctx, number, "desc"))
	if err != nil {
		return forge.Naming{}, err
	}
	var words []forge.Word
	for _, n := range list {
		if !n.System && n.Position == nil && n.CreatedAt != nil && n.UpdatedAt != nil {
			words = append(words, forge.Word{ID: n.Author.ID, Login: n.Author.Username, Body: n.Body, Created: *n.CreatedAt, Updated: *n.UpdatedAt})
		}
	}
	for _, w := range forge.Askers(words, me, head) {
		requests++
		member, resp, err := g.client.ProjectMembers.GetInheritedProjectMember(g.config.Repo, w.ID, sdk.WithContext(ctx))
		if err != nil && status(resp) == http.StatusNotFound {
			continue
		}
		if err != nil {
			return forge.Naming{}, wrap("ask what "+w.Login+" may do", resp, err)
		}
		if member = forge.Answered(member); member.AccessLevel < sdk.DeveloperPermissions || member.State != "active" {
			continue
		}
		requests++
		user, resp, err := g.client.Users.GetUser(w.ID, sdk.GetUsersOptions{}, sdk.WithContext(ctx))
		if err != nil {
			return forge.Naming{}, wrap("ask who "+w.Login+" is", resp, err)
		}
		if user != nil && !user.Bot {
			return forge.Naming{By: w.Login, Requests: requests}, nil
		}
	}
	return forge.Naming{Requests: requests}, nil
}

// notes gets a page of a merge request's comments, the oldest first (asc) or last (desc).
func (g *GitLab) notes(ctx context.Context, number int64, sort string) func(page int) ([]*sdk.Note, int, error) {
	return func(page int) ([]*sdk.Note, int, error) {
		list, resp, err := g.client.Notes.ListMergeRequestNotes(g.config.Repo, number, &sdk.ListMergeRequestNotesOptions{
			ListOptions: pageOf(page), OrderBy: sdk.Ptr("created_at"), Sort: &sort,
		}, sdk.WithContext(ctx))
		return list, next(resp), wrap(fmt.Sprintf("list the comments of merge request %d", number), resp, err)
	}
}

// Comment implements forge.Forge.
func (g *GitLab) Comment(ctx context.Context, number int64, marker, body string) (bool, error) {
	me, err := g.me(ctx)
	if err != nil {
		return false, err
	}
	list, err := forge.Pages(g.notes(ctx, number, "asc"))
	if err != nil {
		return false, err
	}
	notes := make([]forge.Note[int64], 0, len(list))
	for _, n := range list {
		if !n.System && n.Position == nil {
			notes = append(notes, forge.Note[int64]{ID: n.ID, Author: n.Author.Username, Body: n.Body})
		}
	}
	var resp *sdk.Response
	own := forge.Own(notes, me, marker)
	switch {
	case own == nil:
		_, resp, err = g.client.Notes.CreateMergeRequestNote(g.config.Repo, number, &sdk.CreateMergeRequestNoteOptions{Body: &body}, sdk.WithContext(ctx))
	case forge.Same(own.Body, body):
		return false, nil
	default:
		_, resp, err = g.client.Notes.UpdateMergeRequestNote(g.config.Repo, number, own.ID, &sdk.UpdateMergeRequestNoteOptions{Body: &body}, sdk.WithContext(ctx))
	}
	return err == nil, wrap(fmt.Sprintf("comment on merge request %d", number), resp, err)
}

// place is a comment's discussion and its number in it.
type place struct {
	discussion string
	note       int64
}

// Annotate implements forge.Forge.
func (g *GitLab) Annotate(ctx context.Context, pr forge.PullRequest, comments []forge.LineComment) (left int, err error) {
	me, err := g.me(ctx)
	if err != nil {
		return 0, err
	}
	list, err := forge.Pages(func(page int) ([]*sdk.Discussion, int, error) {
		list, resp, err := g.client.Discussions.ListMergeRequestDiscussions(g.config.Repo, pr.Number, &sdk.ListMergeRequestDiscussionsOptions{ListOptions: pageOf(page)}, sdk.WithContext(ctx))
		return list, next(resp), wrap(fmt.Sprintf("list the line comments of merge request %d", pr.Number), resp, err)
	})
	if err != nil {
		return 0, err
	}
	var notes []forge.Note[place]
	for _, d := range list {
		for _, n := range forge.Present(d.Notes) {
			if n.Position != nil {
				notes = append(notes, forge.Note[place]{ID: place{d.ID, n.ID}, Author: n.Author.Username, Body: n.Body, Path: n.Position.NewPath, Line: int(n.Position.NewLine)})
			}
		}
	}
	add, gone := forge.Lines(notes, me, comments)
	for _, n := range gone {
		if resp, err := g.client.Discussions.DeleteMergeRequestDiscussionNote(g.config.Repo, pr.Number, n.ID.discussion, n.ID.note, sdk.WithContext(ctx)); err != nil && status(resp) != http.StatusNotFound {
			return left, wrap(fmt.Sprintf("take a line comment of merge request %d away", pr.Number), resp, err)
		}
	}
	if len(add) > 0 && pr.DiffBase == "" { // lists do not tell it
		if pr, err = g.Get(ctx, pr.Number); err != nil {
			return left, err
		}
	}
	for _, c := range add {
		_, resp, err := g.client.Discussions.CreateMergeRequestDiscussion(g.config.Repo, pr.Number, &sdk.CreateMergeRequestDiscussionOptions{
			Body: &c.Body,
			Position: &sdk.PositionOptions{
				PositionType: sdk.Ptr("text"), BaseSHA: &pr.DiffBase, StartSHA: &pr.DiffStart, HeadSHA: &pr.Head,
				NewPath: &c.Path, OldPath: &c.Path, NewLine: sdk.Ptr(int64(c.Line)),
			},
		}, sdk.WithContext(ctx))
		if err != nil && status(resp) == http.StatusBadRequest {
			left++ // not a line of the diff
			continue
		}
		if err != nil {
			return left, wrap(fmt.Sprintf("comment on lines of merge request %d", pr.Number), resp, err)
		}
	}
	return left, nil
}
