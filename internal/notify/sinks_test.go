package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// posted is a server that keeps what is posted to it.
type posted struct {
	*httptest.Server
	mu     sync.Mutex
	paths  []string
	bodies []string
}

func newPosted(t *testing.T) *posted {
	p := &posted{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "want JSON by POST", http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.paths, p.bodies = append(p.paths, req.URL.String()), append(p.bodies, string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *posted) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.bodies...)
}

// Teams gets a card of plain runs, in which nothing of a reason is a link or a mention.
// PagerDuty gets an alert by the Events API v2, which the contract's next phase resolves; its
// key is in the body alone.
func TestTeamsAndPagerDuty(t *testing.T) {
	w, teams, duty := newWorld(t), newPosted(t), newPosted(t)
	w.tell("vision", "teams", "teams+"+teams.URL+"/workflows/1?sig=x", "degraded")
	w.tell("vision", "duty", "pagerduty+"+duty.URL+"/?routing_key=k3y", "degraded", "active")
	n, stop := w.start()
	defer stop()
	a := contract("a", "h100", 0)
	first := w.at(1, a)
	n.Observe(first)
	w.saw(first)
	down := to(t, a, v1alpha1.PhaseDegraded, "NodeNotReady: [here](https://evil.example.org) <at>all</at>", later(time.Minute))
	n.Observe(w.at(2, down))
	w.until("both hear of it", func() bool { return len(teams.got()) == 1 && len(duty.got()) == 1 })
	n.Observe(w.at(3, to(t, down, v1alpha1.PhaseActive, "", later(2*time.Minute))))
	w.until("it is resolved", func() bool { return len(duty.got()) == 2 })

	var message struct {
		Type        string
		Attachments []struct {
			ContentType string
			Content     struct {
				Type string
				Body []struct {
					Type    string
					Inlines []struct{ Type, Text string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(teams.got()[0]), &message); err != nil {
		t.Fatal(err)
	}
	if message.Type != "message" || len(message.Attachments) != 1 || message.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" || message.Attachments[0].Content.Type != "AdaptiveCard" {
		t.Fatalf("Teams got %s", teams.got()[0])
	}
	for _, block := range message.Attachments[0].Content.Body {
		// Of a TextBlock it would make a link.
		if block.Type != "RichTextBlock" || len(block.Inlines) != 1 || block.Inlines[0].Type != "TextRun" || !strings.HasPrefix(block.Inlines[0].Text, "[degraded] vision/llm is degraded on paris/h100: NodeNotReady: [here](") {
			t.Errorf("Teams got the block %+v", block)
		}
	}

	type event struct {
		Key    string `json:"routing_key"`
		Action string `json:"event_action"`
		Dedup  string `json:"dedup_key"`
		Load   struct {
			Summary, Source, Severity, Timestamp, Component, Group, Class string
			Details                                                       Event `json:"custom_details"`
		} `json:"payload"`
	}
	var events [2]event
	for i, text := range duty.got() {
		if err := json.Unmarshal([]byte(text), &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if duty.paths[0] != "/v2/enqueue" {
		t.Errorf("PagerDuty was asked at %s", duty.paths[0])
	}
	if e := events[0]; e.Key != "k3y" || e.Action != "trigger" || e.Load.Severity != "error" || e.Load.Source != "acme" || e.Load.Class != "degraded" ||
		e.Load.Details.Contract != "a" || !strings.Contains(e.Load.Summary, "is degraded on paris/h100") {
		t.Errorf("PagerDuty got %+v", e)
	}
	if _, err := time.Parse(time.RFC3339, events[0].Load.Timestamp); err != nil {
		t.Error(err)
	}
	if events[1].Action != "resolve" || events[1].Dedup != events[0].Dedup || events[0].Dedup == "" {
		t.Errorf("PagerDuty got %+v after %+v", events[1], events[0])
	}
}
