package githubapp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// maxAnswer bounds an answer with a token, in bytes.
	maxAnswer = 64 << 10
	// maxLife is how far ahead a token may expire: an hour, and what clocks differ by.
	maxLife = time.Hour + 10*time.Minute
)

// checked hands on a token and when it expires, and nothing else of an answer: the library
// reads whatever comes. Answers that are refusals lose their body.
type checked struct {
	next http.RoundTripper
	now  func() time.Time
}

// RoundTrip implements http.RoundTripper. An error tells nothing of the body.
func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body := answer.Body
	answer.Body = http.NoBody
	if answer.StatusCode/100 != 2 {
		return answer, nil
	}
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	var token struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if json.Unmarshal(text, &token) != nil || token.Token == "" {
		return nil, errors.New("the answer is no JSON object with a token and when it expires")
	}
	if life := token.ExpiresAt.Sub(c.now()); life <= 0 || life > maxLife {
		return nil, fmt.Errorf("the answer has a token that expires at %s, want within an hour: see this machine's clock", token.ExpiresAt.UTC().Format(time.RFC3339))
	}
	if text, err = json.Marshal(token); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}
