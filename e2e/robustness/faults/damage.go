//go:build unix

package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

func damages() []Fault {
	return []Fault{
		{Name: "memory", What: "a server may take no more memory from the system for some seconds, and is started again if it dies of that", Cuts: true, Often: 1, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			size, err := addressSpace(e.c.Pid(i))
			if err != nil {
				return outcome{what: fmt.Sprintf("reading the size of server %d", i), server: i, absent: err}
			}
			more := uint64(1+e.rand.IntN(16)) << 20
			d, err := e.limit(ctx, i, unix.RLIMIT_AS, size+more)
			o := outcome{what: fmt.Sprintf("server %d gets %d MiB more for %s", i, more>>20, d.Round(time.Millisecond)), server: i, err: err}
			if e.c.Signal(i, syscall.Signal(0)) != nil {
				o.what += ", and dies"
				e.c.Kill(i)
				o.err = e.again(i)
			}
			return o
		}},
		{Name: "corrupt-row", What: "the value of a row is damaged while a server is down: that is found and not served; then the row is mended", Cuts: true, Often: 1, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			o := outcome{what: fmt.Sprintf("a row is damaged while server %d is down", i), server: i}
			o.wrong, o.err = e.corrupt(context.WithoutCancel(ctx), i)
			return o
		}},
	}
}

// addressSpace returns the size of the address space of a process.
func addressSpace(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return 0, fmt.Errorf("/proc/%d/statm: %w", pid, err)
	}
	return pages * uint64(os.Getpagesize()), nil
}

// corrupt damages a row, checks that a server that starts then does not serve the damaged object and that store verify finds the
// row, and mends it.
func (e *env) corrupt(ctx context.Context, i int) (wrong string, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	const whole = "all that was written"
	k := history.Key{Resource: "configmaps", Namespace: "default", Name: fmt.Sprintf("damaged-%x", e.rand.Uint64())}
	client := e.c.Client(cluster.HTTP1, false)
	defer client.CloseIdleConnections()
	send := func(method, path, body string) (code int, answer string, err error) {
		err = e.until(ctx, func() error {
			code, answer, err = request(ctx, client, method, e.c.URL(i)+path, body)
			if err == nil && slices.Contains([]int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusGatewayTimeout}, code) {
				err = fmt.Errorf("%s %s is answered with %d %s", method, path, code, answer)
			}
			return err
		})
		return code, answer, err
	}
	const path = "/api/v1/namespaces/default/configmaps"
	if _, _, err := send(http.MethodPost, path, fmt.Sprintf(`{"metadata":{"name":%q},"data":{"text":%q}}`, k.Name, whole)); err != nil {
		return "", err
	}
	defer func() {
		if _, _, e := send(http.MethodDelete, path+"/"+k.Name, ""); err == nil {
			err = e
		}
	}()
	var was []byte
	damage := func(value []byte) []byte {
		if was == nil { // the answer to an earlier try may have been lost
			was = bytes.Clone(value)
		}
		if e.c.Postgres() != nil { // it has no checksum of its own for values
			return value[:len(value)-2]
		}
		return bytes.Replace(value, []byte(whole), []byte(strings.ToUpper(whole)), 1)
	}
	rewrite := func(change func([]byte) []byte) error {
		e.c.Kill(i)
		err := e.until(ctx, func() error { return e.c.Rewrite(ctx, k, change) })
		if again := e.again(i); err == nil {
			err = again
		}
		return err
	}
	if err := rewrite(damage); err != nil {
		if was != nil {
			_ = rewrite(func([]byte) []byte { return was })
		}
		return "", err
	}
	code, answer, err := send(http.MethodGet, path+"/"+k.Name, "")
	switch {
	case err == nil && code == http.StatusOK && !strings.Contains(answer, whole):
		wrong = fmt.Sprintf("a damaged object is served: %s", answer)
	case err == nil && code != http.StatusOK && code != http.StatusInternalServerError:
		wrong = fmt.Sprintf("a get of a damaged object is answered with %d %s", code, answer)
	}
	if _, found := e.c.Store(ctx, "verify", "--store", e.c.StoreURL()); found == nil && wrong == "" {
		wrong = "store verify does not find a damaged row"
	}
	if mended := rewrite(func([]byte) []byte { return was }); err == nil {
		err = mended
	}
	if err != nil {
		return wrong, err
	}
	if code, answer, err = send(http.MethodGet, path+"/"+k.Name, ""); err == nil && wrong == "" && (code != http.StatusOK || !strings.Contains(answer, whole)) {
		wrong = fmt.Sprintf("an object whose row was mended is not served: %d %s", code, answer)
	}
	return wrong, err
}

// until tries again until something is done.
func (e *env) until(ctx context.Context, try func() error) error {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if err := try(); err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// request returns a request of the administrator.
func request(ctx context.Context, client *http.Client, method, url, body string) (code int, answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4000))
	return resp.StatusCode, string(text), err
}
