package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// certificateUntil returns one that runs out then, as a request holds it.
func certificateUntil(t *testing.T, until time.Time) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestCertificateCleaner: decided requests go after an hour, pending ones after a day, and approved
// ones no later than their certificate expires.
func TestCertificateCleaner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.NewFakeAPI(t)
		now := time.Now()
		request := func(name string, age time.Duration, status string) {
			w.Set(requestsStorage, "", name, fmt.Sprintf(`{"metadata":{"creationTimestamp":%q},"status":{%s}}`, controllertest.Ago(age), status))
		}
		decided := func(as string, age time.Duration, more string) string {
			return fmt.Sprintf(`"conditions":[{"type":%q,"status":"True","lastUpdateTime":%q}]%s`, as, controllertest.Ago(age), more)
		}
		long := `,"certificate":"` + certificateUntil(t, now.Add(9*time.Hour)) + `"`
		brief := `,"certificate":"` + certificateUntil(t, now.Add(30*time.Minute)) + `"`
		request("waits", 23*time.Hour, "")
		request("waited", 24*time.Hour+time.Second, "")
		request("granted", 0, decided("Approved", 0, long))
		request("granted-long-ago", 30*time.Hour, decided("Approved", time.Hour+time.Second, long))
		request("granted-briefly", 0, decided("Approved", 0, brief))
		request("granted-and-unsigned", 30*time.Hour, decided("Approved", 30*time.Hour, ""))
		request("granted-some-nonsense", 0, decided("Approved", 0, `,"certificate":"eA=="`))
		request("denied", time.Hour, decided("Denied", time.Hour, ""))
		request("denied-long-ago", time.Hour, decided("Denied", time.Hour+time.Second, ""))
		request("failed-long-ago", time.Hour, decided("Failed", time.Hour+time.Second, ""))
		left := func() map[string]bool {
			return w.Names()
		}
		expect := func(names ...string) {
			t.Helper()
			got := left()
			for _, name := range names {
				if !got[name] {
					t.Errorf("%s is gone", name)
				}
				delete(got, name)
			}
			for name := range got {
				t.Errorf("%s is there", name)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- (&Cleaner{Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}}).Run(ctx)
		}()
		synctest.Wait()
		expect("waits", "granted", "granted-briefly", "granted-and-unsigned", "granted-some-nonsense", "denied")
		controllertest.Advance(time.Hour - time.Second)
		expect("waits", "granted", "granted-briefly", "granted-and-unsigned", "granted-some-nonsense", "denied")
		controllertest.Advance(time.Second)
		expect("waits", "granted", "granted-and-unsigned", "granted-some-nonsense")
		controllertest.Advance(time.Hour)
		expect("granted-and-unsigned")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
