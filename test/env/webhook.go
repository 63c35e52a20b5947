package env

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Forge is whose webhook dialect is spoken.
type Forge string

// The forges, named as in the address of the daemon's webhook.
const (
	GitHub  Forge = "github"
	GitLab  Forge = "gitlab"
	Gitea   Forge = "gitea"
	Generic Forge = "generic"
)

// webhookTimeout is how long the receiver of a webhook may take; forges give
// it 5 to 30 s.
const webhookTimeout = 10 * time.Second

// NotifyPushes sends a webhook to an address after each push, as the forge
// would, signed with the secret. A webhook that fails is not repeated, as on
// most forges.
func (s *GitServer) NotifyPushes(ctx context.Context, forge Forge, address, secret string) {
	s.OnPush(func(push Push) {
		for _, update := range push.Updates {
			// Best effort, like the forges': the daemon polls as well.
			_ = PostWebhook(ctx, forge, address, secret, s.BareURL(push.Repo), update)
		}
	})
}

// PostWebhook sends one push event. Answers other than 2xx are errors.
func PostWebhook(ctx context.Context, forge Forge, address, secret, repoURL string, update RefUpdate) error {
	body, err := json.Marshal(map[string]any{
		"ref":    update.Ref,
		"before": update.Old,
		"after":  update.New,
		"repository": map[string]string{
			"clone_url":    repoURL,
			"git_http_url": repoURL,
			"full_name":    strings.TrimSuffix(repoURL[strings.LastIndex(repoURL, "/")+1:], ".git"),
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send a webhook to %s: %w", address, err)
	}
	request.Header.Set("Content-Type", "application/json")
	signWebhook(request.Header, forge, secret, body)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("send a webhook to %s: %w", address, err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("send a webhook to %s: %s: %s", address, response.Status, bytes.TrimSpace(text))
	}
	return nil
}

// signWebhook sets the headers by which the forge names the event and proves
// that it knows the secret: GitLab sends the secret itself, the others an
// HMAC-SHA256 of the body.
func signWebhook(header http.Header, forge Forge, secret string, body []byte) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	sum := hex.EncodeToString(mac.Sum(nil))
	switch forge {
	case GitLab:
		header.Set("X-Gitlab-Event", "Push Hook")
		header.Set("X-Gitlab-Token", secret)
	case Gitea:
		header.Set("X-Gitea-Event", "push")
		header.Set("X-Gitea-Signature", sum)
	case GitHub:
		header.Set("X-Github-Event", "push")
		header.Set("X-Hub-Signature-256", "sha256="+sum)
	default:
		header.Set("X-Signature", "sha256="+sum)
	}
}

// refUpdates reads the commands at the head of a receive-pack request:
// pkt-lines "old new ref", the first followed by NUL and the capabilities, up
// to a flush packet (gitprotocol-pack, "Reference Update Request").
func refUpdates(body []byte) []RefUpdate {
	var updates []RefUpdate
	for {
		line, rest, err := pktLine(body)
		if err != nil || line == nil {
			return updates
		}
		body = rest
		command, _, _ := bytes.Cut(line, []byte{0})
		if fields := strings.Fields(string(command)); len(fields) == 3 && len(fields[0]) == len(fields[1]) {
			updates = append(updates, RefUpdate{Old: fields[0], New: fields[1], Ref: fields[2]})
		}
	}
}

var errNotPktLine = errors.New("not a pkt-line")

// pktLine splits off one packet; a flush packet is a nil line.
func pktLine(data []byte) (line, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, errNotPktLine
	}
	length, err := strconv.ParseUint(string(data[:4]), 16, 16)
	switch {
	case err != nil:
		return nil, nil, err
	case length == 0:
		return nil, data[4:], nil
	case length < 4 || int(length) > len(data):
		return nil, nil, errNotPktLine
	}
	return data[4:length], data[length:], nil
}
