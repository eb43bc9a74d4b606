package tokenfile

import (
	"context"
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	a, err := parse(strings.NewReader("tok1,ann,1\n\ntok2,bob,2,\"g1, g2\"\ntok3,eve,3,g1,g3\n"))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string][]string{"tok1": nil, "tok2": {"g1", "g2"}, "tok3": {"g1", "g3"}} {
		who, mine, err := a.AuthenticateToken(context.Background(), token, nil)
		if err != nil || !mine || !reflect.DeepEqual(who.Identity.Groups, want) {
			t.Errorf("%s: %+v %v %v", token, who, mine, err)
		}
	}
	for _, token := range []string{"", "tok", "tok1 ", "TOK1"} {
		if who, mine, err := a.AuthenticateToken(context.Background(), token, nil); mine || who != nil || err != nil {
			t.Errorf("%q: known", token)
		}
	}
}

func TestParseErrors(t *testing.T) {
	_, err := parse(strings.NewReader("good,ann,1\nsecrettoken,bob\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "secrettoken") {
		t.Fatalf("err = %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a,b,c\n")
	f.Add("a,b,c,\"d,e\"\n")
	f.Add("\"")
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = parse(strings.NewReader(s)) // must not panic
	})
}
