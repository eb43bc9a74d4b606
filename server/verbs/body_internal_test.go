package verbs

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// came is a body that lies in memory.
type came struct {
	*strings.Reader
	body []byte
	most int64
}

func (c *came) Close() error { return nil }

func (c *came) Whole(limit int64) ([]byte, bool) {
	c.most = limit
	return c.body, c.body != nil
}

// TestBodyArrived: a body that lies in memory is taken as it is, and is read where it is not whole.
func TestBodyArrived(t *testing.T) {
	for _, tc := range []struct{ whole, want string }{{"in memory", "in memory"}, {"", "to be read"}} {
		body := &came{Reader: strings.NewReader("to be read")}
		if tc.whole != "" {
			body.body = []byte(tc.whole)
		}
		c := &Call{}
		c.W, c.R = httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil)
		c.R.Body, c.R.ContentLength = body, int64(len("to be read"))
		got, err := (&Handler{MaxBody: 10}).Body(c)
		if err != nil || string(got) != tc.want || body.most != 10 {
			t.Errorf("%q, %v, within %d", got, err, body.most)
		}
		if tc.whole != "" && &got[0] != &body.body[0] {
			t.Error("a copy was made")
		}
		c.R.ContentLength = 11
		if _, err := (&Handler{MaxBody: 10}).Body(c); err == nil {
			t.Error("too long a body was taken")
		}
	}
}
