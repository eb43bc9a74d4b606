package audit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// webhookTries limits the attempts to post a list.
const webhookTries = 5

// Webhook posts lists of events to a server, and tries again while that fails.
type Webhook struct {
	URL     string
	Client  *http.Client
	Backoff time.Duration // before the second try; each wait is half as long again
}

// Name implements Sender.
func (*Webhook) Name() string { return "webhook" }

// Send implements Sender. An answer that another try cannot change ends it.
func (w *Webhook) Send(ctx context.Context, events [][]byte) error {
	var body bytes.Buffer
	body.WriteString(`{"kind":"EventList","apiVersion":"` + apiVersion + `","metadata":{},"items":[`)
	body.Write(bytes.Join(events, []byte(",")))
	body.WriteString("]}\n")
	wait := w.Backoff
	for try := 1; ; try++ {
		again, err := w.post(ctx, body.Bytes())
		if err == nil || !again || try >= webhookTries {
			return err
		}
		select {
		case <-time.After(wait):
			wait += wait / 2
		case <-ctx.Done():
			return err
		}
	}
}

func (w *Webhook) post(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("audit webhook: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.Client.Do(r)
	if err != nil {
		return true, fmt.Errorf("audit webhook: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	if answer.StatusCode/100 == 2 {
		return false, nil
	}
	return answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests, fmt.Errorf("audit webhook: answered %s", answer.Status)
}
