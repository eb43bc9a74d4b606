package clusterinfo

import "testing"

// The signatures were made by another implementation.
func TestDetached(t *testing.T) {
	for _, tc := range []struct{ content, id, secret, want string }{
		{"Hello from the other side. I must have called a thousand times.", "joshua", "my voice is my passcode", "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"},
		{"", "joshua", "my voice is my passcode", "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk"},
	} {
		got, err := detached(tc.content, tc.id, tc.secret)
		if err != nil || got != tc.want {
			t.Errorf("%s %v", got, err)
		}
	}
}
