package external

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/externaljwt/apis/v1alpha1"

	"github.com/rowlock/rowlock/authx/serviceaccount"
)

// Run fetches the keys again whenever the signer's refresh hint expires, until ctx ends.
func (s *Signer) Run(ctx context.Context) error {
	wait := time.NewTimer(time.Until(s.known.Load().until))
	defer wait.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
		}
		err := s.refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if !failed {
				s.cfg.Log.Error("cannot list the keys of the signer of service account tokens; the last ones stay in use", "socket", s.cfg.Socket, "error", err)
			}
			wait.Reset(failedPause)
		default:
			if failed {
				s.cfg.Log.Info("the keys of the signer of service account tokens can be listed again", "socket", s.cfg.Socket)
			}
			wait.Reset(max(time.Second, time.Until(s.known.Load().until)))
		}
		failed = err != nil
	}
}

// refresh fetches the keys, or waits for a fetch in flight.
func (s *Signer) refresh(ctx context.Context) error {
	s.mu.Lock()
	q := s.asking
	if q == nil {
		if s.closed {
			s.mu.Unlock()
			return errors.New("the connection is closed")
		}
		q = &keyFetch{done: make(chan struct{})}
		s.asking = q
		s.group.Go(func() { s.answer(q) })
	}
	s.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer fetches for all waiting callers: none of them ends it by going away.
func (s *Signer) answer(q *keyFetch) {
	ctx, cancel := context.WithTimeout(s.life, s.cfg.Timeout)
	defer cancel()
	got, err := s.fetch(ctx)
	s.metrics.fetched(err, time.Now())
	if err == nil {
		s.metrics.dated(got.at)
		if s.known.Store(got); s.cfg.Changed != nil { // how long they are good is new in any case
			s.cfg.Changed(got.shown(), got.until)
		}
	}
	s.mu.Lock()
	s.asking, s.asked = nil, time.Now()
	s.mu.Unlock()
	q.err = err
	close(q.done)
}

// shown returns the keys that others may find.
func (k *known) shown() []serviceaccount.Key {
	shown := make([]serviceaccount.Key, 0, len(k.keys))
	for _, key := range k.keys {
		if !k.hidden[key.ID] {
			shown = append(shown, key)
		}
	}
	return shown
}

// fetch fetches the keys and checks the answer.
func (s *Signer) fetch(ctx context.Context) (*known, error) {
	answer, err := s.client.FetchKeys(ctx, &v1alpha1.FetchKeysRequest{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("while getting externally supported jwt signing keys: %w", err)
	case answer.RefreshHintSeconds <= 0:
		return nil, fmt.Errorf("found invalid refresh hint (%ds)", answer.RefreshHintSeconds)
	case len(answer.Keys) == 0:
		return nil, errors.New("found no keys")
	case len(answer.Keys) > maxKeys:
		return nil, fmt.Errorf("found %d keys, which is more than %d", len(answer.Keys), maxKeys)
	}
	if err := answer.DataTimestamp.CheckValid(); err != nil {
		return nil, fmt.Errorf("invalid data timestamp: %w", err)
	}
	k := &known{
		at: answer.DataTimestamp.AsTime(), hidden: map[string]bool{},
		until: time.Now().Add(time.Duration(min(answer.RefreshHintSeconds, maxHint)) * time.Second),
	}
	for _, one := range answer.Keys {
		key, err := parse(one)
		if err != nil {
			return nil, err
		}
		if len(k.of(key.ID)) > 0 {
			return nil, fmt.Errorf("found two public keys of the id %.100q", key.ID)
		}
		k.keys = append(k.keys, key)
		if one.ExcludeFromOidcDiscovery {
			k.hidden[key.ID] = true
		}
	}
	return k, nil
}

func parse(k *v1alpha1.Key) (serviceaccount.Key, error) {
	none := serviceaccount.Key{}
	switch {
	case k == nil:
		return none, errors.New("found nil public key")
	case k.KeyId == "" || len(k.KeyId) > maxKeyID:
		return none, fmt.Errorf("found invalid public key id %.100q", k.KeyId)
	case len(k.Key) == 0:
		return none, errors.New("found empty public key")
	}
	public, err := x509.ParsePKIXPublicKey(k.Key)
	if err != nil {
		return none, fmt.Errorf("while parsing external public keys: %w", err)
	}
	key, err := serviceaccount.NewKey(public)
	if err != nil {
		return none, fmt.Errorf("the public key %.100q: %w", k.KeyId, err)
	}
	key.ID = k.KeyId
	return key, nil
}
