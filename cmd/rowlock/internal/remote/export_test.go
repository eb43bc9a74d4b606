package remote

import (
	"os"
	"testing"
)

// RawFile returns the bytes of the file of a Spool, for tests.
func RawFile(t *testing.T, s *Spool) []byte {
	t.Helper()
	info, err := s.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v", info.Mode())
	}
	data := make([]byte, info.Size())
	if _, err := s.file.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	return data
}

// FileName returns the name that the file of a Spool had, for tests.
func FileName(s *Spool) string {
	if _, err := os.Stat(s.file.Name()); err == nil {
		panic("the file still has its name: " + s.file.Name())
	}
	return s.file.Name()
}
