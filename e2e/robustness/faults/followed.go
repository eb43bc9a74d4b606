//go:build unix

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

func followers() []Fault {
	return []Fault{{Name: "follow", What: "an operator has every commit backed up to a folder by a process that is killed and started again, and restores two states from the folder", Often: 1, run: func(ctx context.Context, e *env) outcome {
		o := outcome{what: "store backup --follow, and two restores", server: -1}
		wrong, err := e.follows(context.WithoutCancel(ctx))
		o.wrong, o.absent = text(wrong), err
		return o
	}}}
}

const (
	followTime = time.Minute            // within which a revision is in the folder, however busy the machine is
	followRest = 300 * time.Millisecond // between looks at the folder
)

// follows has commits backed up, restores an exact older state and the newest one, and records both as lists. wrong is a command that
// failed, or a revision that is missing; err breaks no promise.
func (e *env) follows(ctx context.Context) (wrong, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	dir, err := os.MkdirTemp(e.c.Dir(), "followed-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "folder")
	var had [2]uint64 // revisions that the folder had while each process ran
	var call, done time.Duration
	for i, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		cmd := exec.CommandContext(ctx, e.c.Binary(), "store", "backup", "--follow", folder, "--store", e.c.StoreURL())
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		had[i], call, wrong, err = e.followed(ctx, folder)
		_ = cmd.Process.Signal(end) // the process may have ended by itself, which Wait returns
		ended := cmd.Wait()
		if done = e.rec.Now(); wrong != nil || err != nil {
			return wrong, err
		}
		if end == syscall.SIGINT && ended != nil {
			return fmt.Errorf("store backup --follow ends with %w after SIGINT", ended), nil
		}
	}
	for _, to := range []uint64{had[0], 0} {
		restored := "sqlite:" + filepath.Join(dir, fmt.Sprintf("restored-%d.db", to))
		args := []string{"restore", folder, "--store", restored, "--output", "json"}
		if to != 0 {
			args = append(args, "--to", strconv.FormatUint(to, 10))
		}
		out, err := e.c.Store(ctx, args...)
		if err == nil {
			_, err = e.c.Store(ctx, "verify", "--store", restored)
		}
		if err != nil {
			return err, nil
		}
		var answer struct{ Revision uint64 }
		if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Revision == 0 {
			return fmt.Errorf("a restore returns %q, and not its revision (%v)", out, err), nil
		}
		_, rows, err := e.c.Content(ctx, restored, e.ours)
		if err != nil {
			return nil, fmt.Errorf("reading a restored database: %w", err)
		}
		l := history.List{Client: "follow", Match: history.Latest, Call: call, Return: done}
		if to != 0 {
			l.Match, l.Asked = history.Exact, to
		}
		e.record(l, answer.Revision, rows)
	}
	return nil, nil
}

// followed waits until the folder has a base and then the newest revision of a time, which it returns.
func (e *env) followed(ctx context.Context, folder string) (revision uint64, at time.Duration, wrong, err error) {
	client := e.c.Client(cluster.HTTP1, false)
	defer client.CloseIdleConnections()
	for began := time.Now(); time.Since(began) < followTime; time.Sleep(followRest) {
		var listing struct {
			Runs []struct{ First, Last uint64 }
		}
		out, _ := e.c.Store(ctx, "backup", "list", folder, "--output", "json") // while another process writes, it may find problems
		if json.Unmarshal([]byte(out), &listing) != nil || len(listing.Runs) == 0 {
			continue
		}
		last := listing.Runs[len(listing.Runs)-1]
		if revision != 0 && last.Last >= revision {
			return revision, at, nil, nil
		}
		if revision != 0 || last.First == 0 {
			continue
		}
		err := e.until(ctx, func() error {
			var list struct {
				Metadata struct{ ResourceVersion string }
			}
			at = e.rec.Now()
			code, answer, err := request(ctx, client, http.MethodGet, e.c.URL(e.server())+"/api/v1/namespaces/default/configmaps?labelSelector=no%3Dobject", "")
			if err == nil && code == http.StatusOK {
				err = json.Unmarshal([]byte(answer), &list)
			}
			if err == nil {
				revision, err = strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
			}
			return err
		})
		if err != nil {
			return 0, 0, nil, fmt.Errorf("reading the newest revision: %w", err)
		}
	}
	return 0, 0, fmt.Errorf("store backup --follow does not have revision %d within %s", revision, followTime), nil
}
