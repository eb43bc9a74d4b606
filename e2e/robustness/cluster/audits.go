//go:build unix

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// AuditLog is the name of a server's audit log in its folder.
const AuditLog = "audit.log"

// AuditLogs reads the audit logs of the servers.
type AuditLogs struct {
	c  *Cluster
	at []int64 // how many bytes of the log of each server were read
}

// NewAuditLogs returns AuditLogs that read each log from its beginning.
func NewAuditLogs(c *Cluster) *AuditLogs { return &AuditLogs{c: c, at: make([]int64, c.Len())} }

// Read returns the events of operations that the servers have logged since the last call.
func (l *AuditLogs) Read() (all []*history.Audited, err error) {
	for i := range l.at {
		text, err := readFrom(filepath.Join(l.c.Folder(i), AuditLog), l.at[i])
		if err != nil {
			return nil, fmt.Errorf("reading an audit log: %w", err)
		}
		whole := bytes.LastIndexByte(text, '\n') + 1
		l.at[i] += int64(whole)
		all = append(all, ParseAudits(text[:whole], i)...)
	}
	return all, nil
}

func readFrom(path string, at int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// eventBegins begins each event of a log.
const eventBegins = `{"kind":"Event"`

// ParseAudits returns the events of a log that belong to operations. If a process was killed, or its disk was full, its last line may be
// cut short, and the next event follows in the same line.
func ParseAudits(text []byte, server int) (all []*history.Audited) {
	for line := range bytes.Lines(text) {
		if begin := bytes.LastIndex(line, []byte(eventBegins)); begin > 0 && !json.Valid(line) {
			line = line[begin:]
		}
		var e struct {
			AuditID, Stage, Level, Verb string
			User                        struct{ Username string }
			ObjectRef                   struct{ Resource, APIGroup, Namespace, Name string }
			ResponseStatus              struct{ Code int }
			RequestObject               json.RawMessage
			ResponseObject              json.RawMessage
			Annotations                 map[string]string
		}
		if json.Unmarshal(line, &e) != nil || !history.IsID(e.AuditID) {
			continue
		}
		a := &history.Audited{ID: e.AuditID, Server: server, Stage: e.Stage, Level: e.Level, Verb: e.Verb, User: e.User.Username, Code: e.ResponseStatus.Code, Request: e.RequestObject != nil, Response: e.ResponseObject != nil}
		a.Key = history.Key{Resource: strings.TrimSuffix(e.ObjectRef.Resource+"."+e.ObjectRef.APIGroup, "."), Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}
		_, a.Truncated = e.Annotations["audit.k8s.io/truncated"]
		var answer struct {
			Metadata struct{ ResourceVersion string }
		}
		if a.Response && json.Unmarshal(e.ResponseObject, &answer) == nil {
			a.Version, _ = strconv.ParseUint(answer.Metadata.ResourceVersion, 10, 64) // 0: the answer is no object
		}
		all = append(all, a)
	}
	return all
}
