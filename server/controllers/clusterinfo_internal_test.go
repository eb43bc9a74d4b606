package controllers

import "testing"

// The signatures were made by another implementation.
func TestDetached(t *testing.T) {
	for _, tc := range []struct{ content, id, secret, want string }{
		{"", "joshua", "abc", "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..OxjW-vYOv7m-3ThGd-Ijg8CepHIaAEYjgDgYskWC84U"},
		{"foobar", "foo", "bar", "eyJhbGciOiJIUzI1NiIsImtpZCI6ImZvbyJ9..32Hi0Cs20LsQJQ7P-Bm89ZfwJHMpRXiK4Tb7c9SsD6A"},
	} {
		got, err := detached(tc.content, tc.id, tc.secret)
		if err != nil || got != tc.want {
			t.Errorf("%s %v", got, err)
		}
	}
}
