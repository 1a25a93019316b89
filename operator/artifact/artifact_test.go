package artifact

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"ptah.run/ptah/operator/plan/report"
)

// bench is a registry in this process, with TLS unless it is said otherwise.
type bench struct {
	server *httptest.Server
	ca     string
	// handle may answer instead of the registry.
	handle   func(http.ResponseWriter, *http.Request) bool
	requests atomic.Int32
}

func newBench(t *testing.T, secure bool) *bench {
	t.Helper()
	b := &bench{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.requests.Add(1)
		if b.handle != nil && b.handle(w, r) {
			return
		}
		inner.ServeHTTP(w, r)
	})
	if !secure {
		b.server = httptest.NewServer(handler)
		t.Cleanup(b.server.Close)
		return b
	}
	b.server = httptest.NewUnstartedServer(handler)
	b.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust the certificate are expected
	b.server.StartTLS()
	t.Cleanup(b.server.Close)
	b.ca = filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.server.Certificate().Raw})
	if err := os.WriteFile(b.ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) host() string { return strings.SplitN(b.server.URL, "://", 2)[1] }

func (b *bench) ref(t *testing.T, rest string) Reference {
	t.Helper()
	ref, err := ParseReference(Scheme + b.host() + "/shop/schema" + rest)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func (b *bench) client(t *testing.T, access Access) *Client {
	t.Helper()
	access.CAFile = b.ca
	c, err := NewClient(access)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var example = []File{{"002-b.sql", []byte("CREATE TABLE b();")}, {"001-a.sql", []byte("CREATE TABLE a();")}}

func code(t *testing.T, err error) report.Code {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("the error has no code: %v", err)
	}
	return e.Code
}

func TestPushResolveFetch(t *testing.T) {
	for name, secure := range map[string]bool{"over TLS with a CA file": true, "over plain HTTP when asked": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, secure)
			c := b.client(t, Access{PlainHTTP: !secure})
			pushed, err := c.Push(t.Context(), b.ref(t, ":v1"), example, map[string]string{"commit": "1a2b"})
			if err != nil {
				t.Fatal(err, Detail(err))
			}
			found, err := c.Resolve(t.Context(), b.ref(t, ":v1"))
			if err != nil {
				t.Fatal(err)
			}
			if found.Digest != pushed.Digest || found.ArtifactType != SchemaType || found.Annotations["commit"] != "1a2b" ||
				found.Annotations[FormatAnnotation] != "sql" || found.MediaType != "application/vnd.oci.image.manifest.v1+json" {
				t.Errorf("resolved %+v", found)
			}
			info, files, err := c.Fetch(t.Context(), b.ref(t, "@"+found.Digest))
			if err != nil {
				t.Fatal(err)
			}
			if info.Pinned != Scheme+b.host()+"/shop/schema@"+found.Digest || len(files) != 2 || files[0].Name != "001-a.sql" ||
				string(files[1].Data) != "CREATE TABLE b();" {
				t.Errorf("fetched %+v %v", info, files)
			}
			again, err := c.Push(t.Context(), b.ref(t, ":v2"), []File{example[1], example[0]}, map[string]string{"commit": "1a2b"})
			if err != nil || again.Digest != pushed.Digest {
				t.Errorf("equal files have two digests: %v", err)
			}
		})
	}
}

func TestAnArtifactSaysThatItHoldsHCL(t *testing.T) {
	b := newBench(t, true)
	c := b.client(t, Access{})
	mixed := append([]File{{"010-tables.hcl", []byte("table \"t\" {}")}}, example...)
	pushed, err := c.Push(t.Context(), b.ref(t, ":hcl"), mixed, nil)
	if err != nil {
		t.Fatal(err, Detail(err))
	}
	info, files, err := c.Fetch(t.Context(), b.ref(t, "@"+pushed.Digest))
	if err != nil {
		t.Fatal(err)
	}
	if info.Annotations[FormatAnnotation] != "hcl" || len(files) != 3 || files[2].Name != "010-tables.hcl" || !files[2].HCL() || files[0].HCL() {
		t.Errorf("fetched %+v %v", info, files)
	}
	dir := filepath.Join(t.TempDir(), "schema")
	if err := WriteFiles(dir, pushed.Digest, files); err != nil {
		t.Fatal(err)
	}
	if read, err := ReadFiles(dir); err != nil || len(read) != 3 || PulledDigest(dir, read) != pushed.Digest {
		t.Errorf("%v %v", read, err)
	}
}

func TestRegistryErrorsHaveCodes(t *testing.T) {
	answer := func(status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true }
	}
	huge := func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write(make([]byte, MaxManifestBytes+1))
		return true
	}
	for name, test := range map[string]struct {
		handle func(http.ResponseWriter, *http.Request) bool
		want   report.Code
	}{
		"a missing tag":                {nil, report.CodeNotFound},
		"a credential that is refused": {answer(http.StatusUnauthorized), report.CodeAuthentication},
		"a right that is missing":      {answer(http.StatusForbidden), report.CodeAuthentication},
		"a registry in trouble":        {answer(http.StatusBadGateway), report.CodeConnection},
		"a manifest without end":       {huge, report.CodeInvalidArtifact},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, true)
			b.handle = test.handle
			_, err := b.client(t, Access{}).Resolve(t.Context(), b.ref(t, ":absent"))
			if got := code(t, err); got != test.want {
				t.Errorf("the code is %s: %v %s", got, err, Detail(err))
			}
		})
	}
}

func TestAnUnreachableRegistryIsAskedOnce(t *testing.T) {
	b := newBench(t, true)
	b.handle = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	if _, err := b.client(t, Access{}).Resolve(t.Context(), b.ref(t, ":v1")); code(t, err) != report.CodeConnection {
		t.Errorf("%v", err)
	}
	if n := b.requests.Load(); n != 1 {
		t.Errorf("%d requests were made", n)
	}
	b.server.Close()
	if _, err := b.client(t, Access{}).Resolve(t.Context(), b.ref(t, ":v1")); code(t, err) != report.CodeConnection {
		t.Errorf("%v", err)
	}
}

func TestAnUnknownAuthorityIsRefused(t *testing.T) {
	b := newBench(t, true)
	c, err := NewClient(Access{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resolve(t.Context(), b.ref(t, ":v1"))
	if code(t, err) != report.CodeConnection || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("%v: %s", err, Detail(err))
	}
}

func TestNoPlainHTTPUnlessAskedFor(t *testing.T) {
	b := newBench(t, false) // on 127.0.0.1, where the client library would fall back to plain HTTP by itself
	b.handle = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("a credential went out in clear")
		}
		return false
	}
	_, err := b.client(t, Access{Username: "u", Password: "secret"}).Resolve(t.Context(), b.ref(t, ":v1"))
	if code(t, err) != report.CodeConnection || b.requests.Load() != 0 {
		t.Errorf("%v after %d requests", err, b.requests.Load())
	}
}

func TestCredentials(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:secret"))
	config := func(t *testing.T, host string) string {
		path := filepath.Join(t.TempDir(), "config.json")
		text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}},"credsStore":"evil"}`, host, base64.StdEncoding.EncodeToString([]byte("u:secret")))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct {
		access func(*testing.T, string) Access
		want   string // the Authorization header; "" stands for a refusal
	}{
		"user and password":             {func(*testing.T, string) Access { return Access{Username: "u", Password: "secret"} }, basic},
		"a token":                       {func(*testing.T, string) Access { return Access{Token: "tok"} }, "Bearer tok"},
		"a docker configuration":        {func(t *testing.T, h string) Access { return Access{DockerConfig: config(t, h)} }, basic},
		"a docker entry with a URL":     {func(t *testing.T, h string) Access { return Access{DockerConfig: config(t, "https://"+h+"/v1/")} }, basic},
		"a docker entry for other host": {func(t *testing.T, _ string) Access { return Access{DockerConfig: config(t, "other.example")} }, ""},
		"nothing":                       {func(*testing.T, string) Access { return Access{} }, ""},
		"a wrong password":              {func(*testing.T, string) Access { return Access{Username: "u", Password: "wrong"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, true)
			want := test.want
			b.handle = func(w http.ResponseWriter, r *http.Request) bool {
				if want == "" || r.Header.Get("Authorization") != want {
					w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
					w.WriteHeader(http.StatusUnauthorized)
					return true
				}
				return false
			}
			_, err := b.client(t, test.access(t, b.host())).Push(t.Context(), b.ref(t, ":v1"), example, nil)
			if want != "" && err != nil {
				t.Fatalf("%v: %s", err, Detail(err))
			}
			if want == "" && code(t, err) != report.CodeAuthentication {
				t.Errorf("%v", err)
			}
			if err != nil && strings.Contains(err.Error()+Detail(err), "wrong") {
				t.Error("the error holds the password")
			}
		})
	}
}

func TestAccessThatCannotBeMeantIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, access := range map[string]Access{
		"plain HTTP with a CA":       {PlainHTTP: true, CAFile: file("ca", "x")},
		"a CA file without PEM":      {CAFile: file("ca2", "not PEM")},
		"a missing CA file":          {CAFile: filepath.Join(dir, "absent")},
		"a user without a password":  {Username: "u"},
		"a token with a user":        {Token: "t", Username: "u", Password: "p"},
		"a docker file without JSON": {DockerConfig: file("dc", "secret")},
		"an auth that is no base64":  {DockerConfig: file("dc2", `{"auths":{"h":{"auth":"%%"}}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewClient(access)
			if code(t, err) != report.CodeInvalidInput || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
}

// put writes a manifest as it is.
func (b *bench) put(t *testing.T, c *Client, m map[string]any) Reference {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	ref := b.ref(t, ":odd")
	if err := remote.Put(ref.ref, rawManifest{data}, c.options(t.Context(), ref)...); err != nil {
		t.Fatal(err)
	}
	return b.ref(t, "@"+report.Digest(data))
}

func TestFetchRefusesWhatIsNoSchema(t *testing.T) {
	b := newBench(t, true)
	c := b.client(t, Access{})
	good, err := c.Push(t.Context(), b.ref(t, ":v1"), example, nil)
	if err != nil {
		t.Fatal(err)
	}
	layer := func(change func(map[string]any)) map[string]any {
		l := map[string]any{"mediaType": SchemaLayerType, "size": len(example[1].Data), "digest": report.Digest(example[1].Data),
			"annotations": map[string]any{titleAnnotation: "001-a.sql"}}
		change(l)
		return l
	}
	base := func(change func(map[string]any), layers ...map[string]any) map[string]any {
		m := map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": SchemaType,
			"config":      map[string]any{"mediaType": emptyConfigType, "size": 2, "digest": report.Digest([]byte("{}"))},
			"annotations": map[string]any{FormatAnnotation: "sql"}, "layers": layers}
		change(m)
		return m
	}
	same := func(map[string]any) {}
	title := func(name string) func(map[string]any) {
		return func(l map[string]any) { l["annotations"] = map[string]any{titleAnnotation: name} }
	}
	for name, m := range map[string]map[string]any{
		"another artifact type":      base(func(m map[string]any) { m["artifactType"] = "application/x" }, layer(same)),
		"another format":             base(func(m map[string]any) { m["annotations"] = map[string]any{FormatAnnotation: "hcl"} }, layer(same)),
		"another layer type":         base(same, layer(func(l map[string]any) { l["mediaType"] = "text/plain" })),
		"no layer":                   base(func(m map[string]any) { m["layers"] = []any{} }),
		"a size that is not the one": base(same, layer(func(l map[string]any) { l["size"] = 3 })),
		"a file larger than allowed": base(same, layer(func(l map[string]any) { l["size"] = MaxFileBytes + 1 })),
		"a size below zero":          base(same, layer(func(l map[string]any) { l["size"] = -1 })),
		"a name with a folder":       base(same, layer(title("../a.sql"))),
		"a hidden name":              base(same, layer(title(".a.sql"))),
		"a name of another kind":     base(same, layer(title("a.hcl"))),
		"HCL that is called SQL":     base(same, layer(func(l map[string]any) { l["mediaType"] = HCLLayerType })),
		"HCL in a schema of SQL": base(same, layer(func(l map[string]any) {
			l["mediaType"], l["annotations"] = HCLLayerType, map[string]any{titleAnnotation: "a.hcl"}
		})),
		"two files of one name":    base(same, layer(same), layer(same)),
		"no name":                  base(same, layer(title(""))),
		"another manifest version": base(func(m map[string]any) { m["schemaVersion"] = 1 }, layer(same)),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := c.Fetch(t.Context(), b.put(t, c, m))
			if got := code(t, err); got != report.CodeInvalidArtifact {
				t.Errorf("the code is %s: %v", got, err)
			}
		})
	}
	t.Run("but takes the same manifest unchanged", func(t *testing.T) {
		if _, _, err := c.Fetch(t.Context(), b.put(t, c, base(same, layer(same)))); err != nil {
			t.Error(err)
		}
	})
	t.Run("a tag", func(t *testing.T) {
		if _, _, err := c.Fetch(t.Context(), b.ref(t, ":v1")); code(t, err) != report.CodeInvalidInput {
			t.Error(err)
		}
	})
	t.Run("bytes that were changed on the way", func(t *testing.T) {
		b.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet {
				_, _ = w.Write([]byte("CREATE TABLE z();"))
				return true
			}
			return false
		}
		defer func() { b.handle = nil }()
		if _, _, err := c.Fetch(t.Context(), b.ref(t, "@"+good.Digest)); code(t, err) != report.CodeInvalidArtifact {
			t.Error(err, Detail(err))
		}
	})
	t.Run("an index", func(t *testing.T) {
		ref := b.ref(t, ":index")
		if err := remote.WriteIndex(ref.ref, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: empty.Image}), c.options(t.Context(), ref)...); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Resolve(t.Context(), ref); code(t, err) != report.CodeInvalidArtifact {
			t.Error(err)
		}
	})
}

func TestParseReference(t *testing.T) {
	digest := report.Digest(nil)
	for text, want := range map[string]string{
		"oci://registry.example/shop:v1":                    "",
		"registry.example:5000/shop/schema:v1":              "",
		"localhost:5000/shop:v1":                            "",
		"oci://registry.example/shop@" + digest:             digest,
		"oci://registry.example/shop:v1@" + digest:          digest,
		"oci://10.0.0.1:5000/shop/deep/er/schema@" + digest: digest,
	} {
		ref, err := ParseReference(text)
		if err != nil || ref.Digest() != want {
			t.Errorf("%s: %v %q", text, err, ref.Digest())
		}
		if !strings.HasPrefix(ref.String(), Scheme) {
			t.Errorf("%s has no scheme", ref)
		}
	}
	for _, text := range []string{"", "oci://", "shop:v1", "oci://registry.example/shop", "https://registry.example/shop:v1",
		"oci://registry.example/shop:v1?x=1", "oci://registry.example/shop:v1#f", "oci://registry.example/sh op:v1",
		"oci://registry.example/Shop:v1", "oci://registry.example/shop@sha256:00", "oci://registry.example/shop@sha512:" + digest[7:],
		"oci://registry.example/:v1", "oci:///shop:v1", "oci://registry/shop:v1", "oci://oci://registry.example/shop:v1",
		"oci://registry.example/" + strings.Repeat("a", maxReferenceBytes) + ":v1"} {
		if ref, err := ParseReference(text); err == nil {
			t.Errorf("%q was read as %s", text, ref)
		}
	}
}

func FuzzParseReference(f *testing.F) {
	for _, seed := range []string{"oci://registry.example/shop:v1", "registry.example/shop@" + report.Digest(nil), "oci://a.b/c:d@e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := ParseReference(text)
		if err != nil {
			return
		}
		again, err := ParseReference(ref.String())
		if err != nil || again.ref.Name() != ref.ref.Name() {
			t.Fatalf("%q is not read again as itself: %v", ref, err)
		}
		if _, isTag := ref.ref.(name.Tag); isTag == (ref.Digest() != "") {
			t.Fatalf("%q is neither a tag nor a digest", text)
		}
	})
}

// sign attaches an artifact of a type to another.
func TestFilesOfAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "schema")
	digest := report.Digest([]byte("artifact"))
	if err := WriteFiles(dir, digest, example); err != nil {
		t.Fatal(err)
	}
	files, err := ReadFiles(dir)
	if err != nil || len(files) != 2 || files[0].Name != "001-a.sql" {
		t.Fatalf("%v %v", files, err)
	}
	if got := PulledDigest(dir, files); got != digest {
		t.Errorf("the folder is not known as pulled: %q", got)
	}
	if err := WriteFiles(dir, digest, example); code(t, err) != report.CodeInvalidInput {
		t.Errorf("a folder that is not empty: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "001-a.sql"), []byte("CREATE TABLE changed();"), 0o600); err != nil {
		t.Fatal(err)
	}
	if files, err = ReadFiles(dir); err != nil || PulledDigest(dir, files) != "" {
		t.Errorf("a changed file still counts as pulled: %v", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "x.sql")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFiles(dir); code(t, err) != report.CodeInvalidInput {
		t.Errorf("a link: %v", err)
	}
	if _, err := ReadFiles(filepath.Join(dir, "absent")); code(t, err) != report.CodeInvalidInput {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := ReadFiles(t.TempDir()); code(t, err) != report.CodeInvalidArtifact {
		t.Errorf("a folder without SQL: %v", err)
	}
}

func TestAStoppedReadingSaysSo(t *testing.T) {
	b := newBench(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.client(t, Access{}).Resolve(ctx, b.ref(t, ":v1")); code(t, err) != report.CodeCanceled {
		t.Errorf("%v", err)
	}
}
