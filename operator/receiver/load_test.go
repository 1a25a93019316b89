package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/receiver/delivery"
)

// rewrite replaces the bytes of a stored record, which no client of a real API server can.
func (w *world) rewrite(t *testing.T, name string, edit func([]byte) []byte) {
	t.Helper()
	change(w, &v1alpha1.PtahResultRecord{}, name, func(r *v1alpha1.PtahResultRecord) { r.Spec.Data = edit(r.Spec.Data) })
}

// editManifest changes a manifest and writes it back.
func editManifest(t *testing.T, edit func(*manifest)) func([]byte) []byte {
	return func(data []byte) []byte {
		t.Helper()
		var m manifest
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		edit(&m)
		changed, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
}

func TestAnAlteredResultDoesNotLoad(t *testing.T) {
	remove := func(name func(string) string) func(*testing.T, *world, string) {
		return func(t *testing.T, w *world, publication string) {
			record := &v1alpha1.PtahResultRecord{}
			record.Namespace, record.Name = "shop", name(publication)
			if err := w.client.Delete(context.Background(), record); err != nil {
				t.Fatal(err)
			}
		}
	}
	complete := func(edit func(*manifest)) func(*testing.T, *world, string) {
		return func(t *testing.T, w *world, publication string) {
			w.rewrite(t, completeName(publication), editManifest(t, edit))
		}
	}
	first := func(publication string) string { return chunkName(publication, 0) }
	for name, test := range map[string]struct {
		large bool
		spoil func(*testing.T, *world, string)
		want  string
	}{
		"a flipped byte in a small result": {false, func(t *testing.T, w *world, p string) {
			w.rewrite(t, completeName(p), editManifest(t, func(m *manifest) { m.Inline[10] ^= 1 }))
		}, "size and digest of the complete record"},
		"a flipped byte in a chunk": {true, func(t *testing.T, w *world, p string) {
			w.rewrite(t, first(p), func(data []byte) []byte { data[10] ^= 1; return data })
		}, "-000 does not have its size and digest"},
		"a chunk cut short": {true, func(t *testing.T, w *world, p string) {
			w.rewrite(t, first(p), func(data []byte) []byte { return data[1:] })
		}, "-000 does not have its size and digest"},
		"a missing chunk":  {true, remove(first), "-000 is missing"},
		"a missing intent": {true, remove(intentName), "-intent is missing"},
		"a chunk created anew": {true, func(t *testing.T, w *world, p string) {
			change(w, &v1alpha1.PtahResultRecord{}, first(p), func(r *v1alpha1.PtahResultRecord) { r.UID = "another" })
		}, "-000 was created anew"},
		"a chunk of another type": {true, func(t *testing.T, w *world, p string) {
			change(w, &v1alpha1.PtahResultRecord{}, first(p), func(r *v1alpha1.PtahResultRecord) { r.Spec.Type = v1alpha1.ResultIntent })
		}, "is of type intent, not chunk"},
		"chunks in another order": {true, complete(func(m *manifest) { m.Chunks[0], m.Chunks[1] = m.Chunks[1], m.Chunks[0] }), "names"},
		"one chunk fewer":         {true, complete(func(m *manifest) { m.Chunks = m.Chunks[:2] }), "the intent record is of another result"},
		"no chunks":               {true, complete(func(m *manifest) { m.Chunks = nil }), "names no chunks"},
		"another total size":      {true, complete(func(m *manifest) { m.Size-- }), "larger than the result"},
		"another total digest":    {true, complete(func(m *manifest) { m.Digest = digest("f") }), "the intent record is of another result"},
		"another identity":        {false, complete(func(m *manifest) { m.Identity.JobUID = "other" }), "belongs to another operation"},
		"another namespace":       {false, complete(func(m *manifest) { m.Identity.Namespace = "bank" }), "belongs to another operation"},
		"another version":         {false, complete(func(m *manifest) { m.Version = 2 }), "manifest version 2 is not 1"},
		"a manifest that is none": {false, func(t *testing.T, w *world, p string) {
			w.rewrite(t, completeName(p), func([]byte) []byte { return []byte("[]") })
		}, "not a result manifest"},
		"an unknown field": {false, func(t *testing.T, w *world, p string) {
			w.rewrite(t, completeName(p), func(data []byte) []byte { return []byte(strings.Replace(string(data), "{", `{"odd":1,`, 1)) })
		}, "unknown field"},
		"a small result of another type": {false, func(t *testing.T, w *world, p string) {
			change(w, &v1alpha1.PtahResultRecord{}, completeName(p), func(r *v1alpha1.PtahResultRecord) { r.Spec.Type = v1alpha1.ResultChunk })
		}, "is of type chunk, not complete"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, delivery.OperationRefresh)
			body := w.document(t)
			if test.large {
				body = w.largeDocument(t)
			}
			w.put(body)
			publication := delivery.Publication(w.id)
			if _, err := Load(context.Background(), w.client, "shop", publication); err != nil {
				t.Fatalf("before it was altered: %v", err)
			}
			test.spoil(t, w, publication)
			var invalid *InvalidResultError
			_, err := Load(context.Background(), w.client, "shop", publication)
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want an invalid result with %q", err, test.want)
			}
		})
	}
}

func TestWithoutACompleteRecordThereIsNoResult(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	if _, err := Load(context.Background(), w.client, "shop", delivery.Publication(w.id)); !errors.Is(err, ErrNoResult) {
		t.Errorf("error %v, want ErrNoResult", err)
	}
}

func TestAReadThatFailsIsNotAMissingResult(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	w.fail = func(string) error { return errors.New("overloaded") }
	_, err := Load(context.Background(), w.client, "shop", delivery.Publication(w.id))
	var invalid *InvalidResultError
	if err == nil || errors.Is(err, ErrNoResult) || errors.As(err, &invalid) {
		t.Errorf("error %v, want the one of the read", err)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"digest":"` + digest("1") + `","size":1,"inline":"AA=="}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data)
		if err == nil && (m.Version != manifestVersion || m.Size < 1 || delivery.Validate(m.Identity) != nil) {
			t.Errorf("accepted %q", data)
		}
	})
}
