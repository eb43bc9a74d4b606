package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// profileFlag has the compiler guided by the profile, as builds for use are.
const profileFlag = "-pgo=cmd/rowlock/load.pgo "

// TestProfile: the compiler can read the profile that builds for use are guided by, and finds
// this program in it.
func TestProfile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "profile")
	outside(t, "go", "tool", "preprofile", "-i", "../cmd/rowlock/load.pgo", "-o", path)
	read, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GO PREPROFILE V1\n", "\ngithub.com/rowlock/rowlock/server/verbs.", "\ngithub.com/rowlock/rowlock/sqlstore.(*Store)."} {
		if !strings.Contains("\n"+string(read), want) {
			t.Errorf("the profile has no %q", want)
		}
	}
}

// TestDockerfile: the commands of the Dockerfile build the program with its version, and the
// command of the image serves.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	out, source := t.TempDir(), sourceCopy(t)
	if strings.Count(joined, profileFlag) != 1 {
		t.Errorf("the program is not built with %s", profileFlag)
	}
	here := strings.NewReplacer("-o 65532 -g 65532 ", "", "/var-lib-rowlock", filepath.Join(out, "data"), "-o /rowlock", "-o "+filepath.Join(out, "rowlock"))
	var entry, command []string
	for line := range strings.Lines(joined) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "RUN":
			if rest == "go mod download" {
				continue // everything is there, or this test would not run
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", here.Replace(rest))
			cmd.Dir, cmd.Env = source, append(os.Environ(), "VERSION=v1.2.3-test")
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", rest, err, b)
			}
		case "COPY":
			for _, from := range strings.Fields(rest)[:len(strings.Fields(rest))-1] {
				if strings.HasPrefix(from, "--") || strings.HasPrefix(from, "/") {
					continue
				}
				if _, err := os.Stat("../" + from); err != nil {
					t.Errorf("COPY: %v", err)
				}
			}
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &entry)
		case "CMD":
			err = json.Unmarshal([]byte(rest), &command)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if !slices.Equal(entry, []string{"/rowlock"}) || !slices.Equal(command, []string{"serve", "--data-dir", "/var/lib/rowlock"}) {
		t.Errorf("the image starts %q %q", entry, command)
	}
	if got := outside(t, filepath.Join(out, "rowlock"), "version"); !strings.HasPrefix(got, "rowlock v1.2.3-test (") {
		t.Errorf("the image's program is %s", got)
	}
	if kind := outside(t, "file", "-L", filepath.Join(out, "rowlock")); !strings.Contains(kind, "statically linked") {
		t.Errorf("the image has nothing to link with: %s", kind)
	}
}

// sourceCopy copies the repository, as COPY does: a build in the repository itself would change the
// files of concurrent builds.
func sourceCopy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimRight(outside(t, "git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join("..", name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // deleted and not committed yet; links
		}
		var text []byte
		if err == nil {
			text, err = os.ReadFile(filepath.Join("..", name))
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, info.Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
