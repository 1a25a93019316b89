package secretscan_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"

	"ptah.run/ptah/qualification/bundle/secretscan"
)

const labPassword = "Zw9-lab/password+41"

func scanner(t testing.TB) *secretscan.Scanner {
	t.Helper()
	s, err := secretscan.New(secretscan.DefaultLimits, []byte(labPassword))
	must(t, err)
	return s
}

func scan(t testing.TB, data []byte) []secretscan.Finding {
	t.Helper()
	findings, err := scanner(t).Scan("evidence/file", bytes.NewReader(data))
	must(t, err)
	return findings
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kinds(findings []secretscan.Finding) map[secretscan.Kind]bool {
	found := map[secretscan.Kind]bool{}
	for _, finding := range findings {
		found[finding.Kind] = true
	}
	return found
}

// token is a JWT with a header that is one.
func token(t testing.TB) string {
	t.Helper()
	part := func(v any) string {
		data, err := json.Marshal(v)
		must(t, err)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return part(map[string]string{"alg": "RS256", "kid": "x"}) + "." + part(map[string]string{"sub": "system:serviceaccount:a:b"}) + "." + strings.Repeat("s1G", 40)
}

func pkcs8(t testing.TB) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return der
}

func TestCredentialsAreFound(t *testing.T) {
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ec, err := x509.MarshalECPrivateKey(ecKey)
	must(t, err)
	basic := base64.StdEncoding.EncodeToString([]byte("puller:s3cr3t-pull"))
	cases := map[string]struct {
		text string
		want secretscan.Kind
	}{
		"a given value":                        {"x" + labPassword + "y", secretscan.KnownSecret},
		"a given value in base64":              {"eA " + base64.StdEncoding.EncodeToString([]byte("ab"+labPassword+"c")), secretscan.KnownSecret},
		"a given value in a query":             {"GET /?p=" + url.QueryEscape(labPassword), secretscan.KnownSecret},
		"a given value in hexadecimal":         {hex.EncodeToString([]byte(labPassword)), secretscan.KnownSecret},
		"a private key in PEM":                 {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8(t)})), secretscan.PrivateKey},
		"an encrypted private key":             {"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB", secretscan.PrivateKey},
		"an OpenSSH key":                       {"-----BEGIN OPENSSH PRIVATE KEY-----\n", secretscan.PrivateKey},
		"a PGP key":                            {"-----BEGIN PGP PRIVATE KEY BLOCK-----", secretscan.PrivateKey},
		"a private key in DER in base64":       {"key=" + base64.StdEncoding.EncodeToString(pkcs8(t)), secretscan.PrivateKey},
		"an EC key in DER in base64":           {"key: " + base64.StdEncoding.EncodeToString(ec), secretscan.PrivateKey},
		"a kubeconfig":                         {"users:\n- user:\n    client-key-data: " + base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ec})), secretscan.PrivateKey},
		"an age identity":                      {"AGE-SECRET-KEY-1" + strings.Repeat("QPZRY9X8", 7), secretscan.AgeIdentity},
		"a token":                              {`{"token":"` + token(t) + `"}`, secretscan.Token},
		"a bearer header":                      {"Authorization: Bearer 0a9f8e7d6c5b4a39", secretscan.Authorization},
		"a basic header":                       {"authorization: Basic " + basic, secretscan.Authorization},
		"a PostgreSQL address":                 {"postgres://shop:hunter22@db:5432/shop", secretscan.DatabaseURL},
		"a PostgreSQL address with short":      {"postgresql://shop:a@db/shop", secretscan.DatabaseURL},
		"a MySQL address":                      {"mysql://root:p%40ss@127.0.0.1/x", secretscan.DatabaseURL},
		"a MySQL DSN":                          {"dsn root:hunter22@tcp(127.0.0.1:3306)/x", secretscan.DatabaseURL},
		"a key/value DSN":                      {"host=db user=x password=hunter22 dbname=y", secretscan.Password},
		"an address with a password":           {"https://robot:hunter22@registry.example/v2/", secretscan.URLPassword},
		"a password in JSON":                   {`{"user":"x","password":"swordfish"}`, secretscan.Password},
		"a password in YAML":                   {"admin:\n  adminPassword: 'swordfish'\n", secretscan.Password},
		"a password in an environment":         {"PGPASSWORD=sw0rdfish", secretscan.Password},
		"a password in a Pod":                  {`{"env":[{"name":"MYSQL_ROOT_PASSWORD","value":"swordfish"}]}`, secretscan.Password},
		"a password in a Pod in YAML":          {"env:\n- name: DB_PASSWORD\n  value: swordfish\n", secretscan.Password},
		"a password as an option":              {"args: [ptah, --password, sw0rdfish]", secretscan.Password},
		"a password in SQL":                    {"LOG: statement: ALTER ROLE shop PASSWORD 'swordfish'", secretscan.Password},
		"a password in MySQL":                  {"CREATE USER x IDENTIFIED WITH caching_sha2_password BY 'swordfish'", secretscan.Password},
		"a SCRAM verifier":                     {"SCRAM-SHA-256$4096:c2FsdHNhbHQ=$c3RvcmVkc3RvcmVkc3RvcmVk:c2VydmVy", secretscan.PasswordHash},
		"an htpasswd line":                     {"puller:$2y$05$" + strings.Repeat("abcdefghi", 6)[:53], secretscan.PasswordHash},
		"a bootstrap token":                    {"kubeadm join 10.0.0.1 --token abcdef.0123456789abcdef", secretscan.APIKey},
		"a client secret":                      {`"clientSecret": "8Qw7ty6Ru5iO4pA3sD2f"`, secretscan.APIKey},
		"an AWS key id":                        {"id AKIAQWERTYUIOPASDFGH", secretscan.CloudKey},
		"an AWS secret":                        {"aws_secret_access_key = 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", secretscan.APIKey},
		"a forge token":                        {"ghp_" + strings.Repeat("a1B2", 9), secretscan.CloudKey},
		"a registry configuration":             {`{"auths":{"registry.lab:5000":{"auth":"` + basic + `"}}}`, secretscan.RegistryAuth},
		"a Secret in JSON":                     {`{"apiVersion":"v1","kind":"Secret","data":{"url":"b3BhcXVl"}}`, secretscan.KubernetesSecret},
		"a Secret in indented JSON":            {"{\n  \"kind\": \"Secret\",\n  \"metadata\": {\"name\": \"x\"},\n  \"data\": {\n    \"url\": \"b3BhcXVl\"\n  }\n}\n", secretscan.KubernetesSecret},
		"a Secret in YAML":                     {"---\nkind: ConfigMap\n---\napiVersion: v1\nkind: Secret\nstringData:\n  url: opaque\n", secretscan.KubernetesSecret},
		"a list of Secrets":                    {`{"kind":"SecretList","items":[{"metadata":{},"data":{"a":"b3BhcXVl"}}]}`, secretscan.KubernetesSecret},
		"a Secret in a log line":               {"W0101 created object {\"kind\":\"Secret\",\"data\":{\"url\":\"b3BhcXVl\"}} in 3ms", secretscan.KubernetesSecret},
		"a Secret after a colon in a log":      {"klog: sent: {\"kind\": \"Secret\", \"data\": {\"url\": \"b3BhcXVl\"}}", secretscan.KubernetesSecret},
		"a Secret in an audit event":           {`{"kind":"Event","level":"RequestResponse","responseObject":{"kind":"Secret","data":{"a":"b3BhcXVl"}}}`, secretscan.KubernetesSecret},
		"a Secret in an annotation":            {`{"kind":"X","metadata":{"annotations":{"last":"{\"kind\":\"Secret\",\"data\":{\"a\":\"b3BhcXVl\"}}"}}}`, secretscan.KubernetesSecret},
		"a key in a JSON string":               {`{"m":"first\n-----BEGIN RSA PRIVATE KEY-----\nMII\n"}`, secretscan.PrivateKey},
		"an address in a string in a string":   {`{"a":"{\"b\":\"{\\\"u\\\":\\\"postgres:\\/\\/x:hunter22@db\\\"}\"}"}`, secretscan.DatabaseURL},
		"an address in HTML":                   {"<code>postgres:&#x2F;&#x2F;x&#58;hunter22&#64;db</code>", secretscan.DatabaseURL},
		"an address in a path in base64":       {"/objects/" + base64.RawURLEncoding.EncodeToString([]byte("the url is postgres://x:hunter22@db/y")), secretscan.DatabaseURL},
		"an encrypted file":                    {"age-encryption.org/v1\n-> X25519 abc\n", secretscan.Opaque},
		"a compressed file that cannot opened": {"\xfd7zXZ\x00\x00\x00", secretscan.Opaque},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			findings := scan(t, []byte(test.text))
			if !kinds(findings)[test.want] {
				t.Errorf("found %v, want %s", findings, test.want)
			}
			for _, finding := range findings {
				for _, secret := range []string{labPassword, "hunter22", "swordfish", "sw0rdfish", basic, "b3BhcXVl"} {
					if strings.Contains(finding.String(), secret) {
						t.Errorf("the finding %q shows the secret", finding)
					}
				}
			}
		})
	}
}

func TestWhatIsNoCredentialPasses(t *testing.T) {
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	public, err := x509.MarshalPKIXPublicKey(ecKey.Public())
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1, 0)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, ecKey.Public(), ecKey)
	must(t, err)
	cases := map[string]string{
		"a digest":                     "sha256:" + strings.Repeat("0f3a", 16),
		"a UID":                        `{"uid":"0b1e6f5e-6d35-4d8b-8b0e-1f6f0f6f7a11","credential-id":["JTI=0b1e6f5e-6d35-4d8b-8b0e-1f6f0f6f7a11"]}`,
		"a public key":                 string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"a public key in base64":       base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"a public key in DER":          base64.StdEncoding.EncodeToString(public),
		"a certificate":                string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		"an SSH public key":            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl a@b",
		"an age recipient":             "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kdk3s8pxs9w8h4k",
		"a signed statement":           `{"payload":"` + base64.StdEncoding.EncodeToString([]byte(`{"_type":"https://in-toto.io/Statement/v1"}`)) + `","signatures":[{"keyid":"sha256:aa","sig":"` + base64.StdEncoding.EncodeToString(make([]byte, 64)) + `"}]}`,
		"a reference to a Secret":      `{"env":[{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"shop-db","key":"password"}}}],"volumes":[{"secret":{"secretName":"shop-db"}}]}`,
		"a Secret without data":        `{"kind":"Secret","metadata":{"name":"x"},"data":{}}`,
		"a Secret that was redacted":   "kind: Secret\ndata:\n  url: REDACTED\n",
		"a ConfigMap beside a Secret":  "kind: ConfigMap\ndata:\n  url: something\n---\nkind: Secret\nmetadata:\n  name: x\n",
		"an owner reference":           `{"kind":"ConfigMap","data":{"some":"value"},"metadata":{"ownerReferences":[{"kind":"Secret","name":"x"}]}}`,
		"an audit event about Secrets": `{"kind":"Event","verb":"get","objectRef":{"resource":"secrets","namespace":"a","name":"shop-db"},"annotations":{"authorization.k8s.io/decision":"allow"}}`,
		"a file with a password":       `{"passwordFile":"/labs/x/password","tokenPath":"/var/run/secrets/token","certificateAuthorityData":"x"}`,
		"a database's refusal":         `FATAL: password authentication failed for user "shop"; wrong-password-bounded-retry: the password was rotated`,
		"an address without password":  "postgres://shop@db:5432/shop https://db:5432/x@y http://[::1]:80/a@b",
		"an address that was redacted": "postgres://shop:xxxxx@db/shop mysql://root:***@db postgres://u:$PASSWORD@db postgres://u:${PGPASSWORD}@db",
		"a variable":                   "PGPASSWORD=$PASSWORD; password: <password>; --password ${X}",
		"a projected token":            `{"serviceAccountToken":{"audience":"operator.ptah.run/results","expirationSeconds":3607},"automountServiceAccountToken":false}`,
		"a continue token":             `{"metadata":{"continue":"` + base64.StdEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":12,"start":"x"}`)) + `"}}`,
		"a bearer scheme":              `WWW-Authenticate: Bearer realm="https://registry/token",service="registry"`,
		"a stack of text":              "the runner's token is projected; token: bound to the Pod",
		"random bytes":                 string(randomBytes(t, 64<<10)),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if findings := scan(t, []byte(text)); len(findings) > 0 {
				t.Errorf("found %v", findings)
			}
		})
	}
}

func randomBytes(t testing.TB, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	_, err := io.ReadFull(rand.Reader, data)
	must(t, err)
	return data
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

func tarred(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}))
	_, err := w.Write(data)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	file, err := w.Create("inner/file")
	must(t, err)
	_, err = file.Write(data)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

// wraps are the ways in which something can be wrapped.
func wraps(t testing.TB) map[string]func([]byte) []byte {
	t.Helper()
	return map[string]func([]byte) []byte{
		"JSON": func(data []byte) []byte {
			out, err := json.Marshal(map[string]string{"log": string(data)})
			must(t, err)
			return out
		},
		"base64": func(data []byte) []byte { return []byte("x: " + base64.StdEncoding.EncodeToString(data) + "\n") },
		"wrapped base64": func(data []byte) []byte {
			encoded := base64.StdEncoding.EncodeToString(data)
			var out strings.Builder
			for len(encoded) > 76 {
				out.WriteString("  " + encoded[:76] + "\r\n")
				encoded = encoded[76:]
			}
			return []byte(out.String() + "  " + encoded + "\n")
		},
		"hexadecimal": func(data []byte) []byte { return []byte(hex.EncodeToString(data)) },
		"percent":     func(data []byte) []byte { return []byte("q=" + url.PathEscape(string(data))) },
		"gzip":        func(data []byte) []byte { return gzipped(t, data) },
		"zlib": func(data []byte) []byte {
			var out bytes.Buffer
			w := zlib.NewWriter(&out)
			_, err := w.Write(data)
			must(t, err)
			must(t, w.Close())
			return out.Bytes()
		},
		"zstd": func(data []byte) []byte {
			w, err := zstd.NewWriter(nil)
			must(t, err)
			return w.EncodeAll(data, nil)
		},
		"tar": func(data []byte) []byte { return tarred(t, "inner/file", data) },
		"zip": func(data []byte) []byte { return zipped(t, data) },
		"UTF-16": func(data []byte) []byte {
			out := []byte("\xff\xfe")
			for _, unit := range utf16.Encode([]rune(string(data))) {
				out = append(out, byte(unit), byte(unit>>8))
			}
			return out
		},
	}
}

func TestCredentialsAreFoundTwoWrapsDeep(t *testing.T) {
	payload := []byte("before\npostgres://shop:hunter22@db/shop\nand " + labPassword + "\nafter\n")
	all := wraps(t)
	for outer, wrapOuter := range all {
		for inner, wrapInner := range all {
			if !textual(outer) || outer == "UTF-16" {
				// Bytes of a container survive in text only where the text is an encoding for bytes.
			} else if !textual(inner) && (outer == "JSON" || outer == "percent") {
				continue
			}
			if outer == "UTF-16" && !textual(inner) {
				continue
			}
			found := kinds(scan(t, wrapOuter(wrapInner(payload))))
			if !found[secretscan.DatabaseURL] || !found[secretscan.KnownSecret] {
				t.Errorf("%s in %s: found %v", inner, outer, found)
			}
		}
	}
}

func textual(wrap string) bool {
	switch wrap {
	case "gzip", "zlib", "zstd", "tar", "zip", "UTF-16":
		return false
	}
	return true
}

func TestAPlaceLeadsToTheCredential(t *testing.T) {
	data := tarred(t, "logs/manager.log.gz", gzipped(t, []byte("fine\nfine\n  postgres://shop:hunter22@db/shop\n")))
	findings := scan(t, data)
	want := `evidence/file: tar > "logs/manager.log.gz" > gzip > line 3, column 3: database-url`
	if len(findings) != 1 || findings[0].String() != want {
		t.Errorf("found %v, want %s", findings, want)
	}
}

func TestANameThatIsACredentialIsNotShown(t *testing.T) {
	findings := scan(t, tarred(t, "logs/"+token(t), []byte("x")))
	if !kinds(findings)[secretscan.Token] {
		t.Fatalf("found %v", findings)
	}
	findings, err := scanner(t).Scan("logs/"+labPassword, strings.NewReader("fine"))
	must(t, err)
	if !kinds(findings)[secretscan.KnownSecret] || strings.Contains(fmt.Sprint(findings), labPassword) {
		t.Errorf("found %v", findings)
	}
}

// narrow is a scanner with small blocks, so that little text has many of them.
func narrow(t testing.TB) *secretscan.Scanner {
	t.Helper()
	limits := secretscan.DefaultLimits
	limits.Block = 64 << 10
	s, err := secretscan.New(limits)
	must(t, err)
	return s
}

func TestABlockBoundaryHidesNothing(t *testing.T) {
	const block = 64 << 10
	secret := "postgres://shop:hunter22@db/shop"
	for _, separator := range []string{"\n", " "} {
		for _, at := range []int{block - 40, block - 10, block - 1, block, block - block/16, 2 * block} {
			filler := strings.Repeat("0123456789abcde"+separator, at/16+1)[:at]
			text := filler + separator + secret + separator + filler
			findings, err := narrow(t).Scan("file", strings.NewReader(text))
			must(t, err)
			line := strings.Count(filler+separator, "\n") + 1
			if len(findings) != 1 || findings[0].Kind != secretscan.DatabaseURL || !strings.HasPrefix(findings[0].Place, fmt.Sprintf("line %d, ", line)) {
				t.Errorf("at %d between %q: found %v, want one on line %d", at, separator, findings, line)
			}
		}
	}
}

func TestALargeEncodingIsSeenWhole(t *testing.T) {
	noise := hex.EncodeToString(randomBytes(t, 256<<10)) // compresses to half of its size
	encoded := base64.StdEncoding.EncodeToString(gzipped(t, []byte(noise+"\npostgres://shop:hunter22@db/shop\n")))
	var wrapped strings.Builder
	for rest := encoded; rest != ""; rest = rest[min(76, len(rest)):] {
		wrapped.WriteString(rest[:min(76, len(rest))] + "\n")
	}
	for name, text := range map[string]string{"one line": "some text\nx: " + encoded + "\nmore\n", "wrapped lines": "some text\n" + wrapped.String() + "\nmore\n"} {
		findings, err := narrow(t).Scan("file", strings.NewReader(text))
		must(t, err)
		if len(text) < 300<<10 || !kinds(findings)[secretscan.DatabaseURL] {
			t.Errorf("%s of %d bytes: found %v", name, len(text), findings)
		}
	}
}

func TestABombIsRefused(t *testing.T) {
	limits := secretscan.Limits{Depth: 8, Derived: 1 << 20, Ratio: 10, Members: 50, Archive: 1 << 20, Block: 64 << 10, Line: 1 << 20}
	s, err := secretscan.New(limits)
	must(t, err)
	zeros := bytes.Repeat([]byte("fine\n"), 1<<20)
	deep := []byte("fine")
	for range 12 {
		deep = gzipped(t, deep)
	}
	strung := "fine"
	for range 12 {
		quoted, err := json.Marshal(strung + `"`)
		must(t, err)
		strung = string(quoted)
	}
	var members bytes.Buffer
	w := tar.NewWriter(&members)
	for i := range 60 {
		must(t, w.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Format: tar.FormatUSTAR}))
	}
	must(t, w.Close())
	noise := gzipped(t, randomBytes(t, 1<<20))
	for name, data := range map[string][]byte{
		"gzip":             gzipped(t, zeros),
		"zstd":             wraps(t)["zstd"](zeros),
		"zip":              zipped(t, zeros),
		"gzip in tar":      tarred(t, "a", gzipped(t, zeros)),
		"gzip in gzip":     gzipped(t, gzipped(t, zeros)),
		"gzip in base64":   []byte(base64.StdEncoding.EncodeToString(gzipped(t, zeros))),
		"many layers":      deep,
		"many members":     members.Bytes(),
		"a zip that big":   zipped(t, append(noise, noise...)),
		"strings in depth": []byte(strung),
		"an endless line":  bytes.Repeat([]byte("0123456789 "), 128<<10),
	} {
		findings, err := s.Scan("bomb", bytes.NewReader(data))
		must(t, err)
		if !kinds(findings)[secretscan.Limit] {
			t.Errorf("%s: found %v", name, findings)
		}
	}
	if findings, err := s.Scan("control", bytes.NewReader(gzipped(t, zeros[:512<<10]))); err != nil || len(findings) > 0 {
		t.Errorf("control: %v, %v", findings, err)
	}
}

func TestADamagedContainerIsRefused(t *testing.T) {
	whole := gzipped(t, []byte(strings.Repeat("some text that is long enough ", 100)))
	for name, data := range map[string][]byte{
		"cut gzip":     whole[:len(whole)/2],
		"cut tar":      tarred(t, "a", make([]byte, 4096))[:1500],
		"cut zip":      zipped(t, make([]byte, 100))[:80],
		"altered gzip": append(bytes.Clone(whole[:len(whole)-6]), 0, 0, 0, 0, 0, 0),
	} {
		if found := kinds(scan(t, data)); !found[secretscan.Opaque] {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

func TestAnUnreadableFileIsAnErrorAndNoFinding(t *testing.T) {
	_, err := scanner(t).Scan("evidence/file", io.MultiReader(strings.NewReader("fine"), failing{}))
	if err == nil || !strings.Contains(err.Error(), "evidence/file") {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func TestSecretFiles(t *testing.T) {
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8(t)})
	for name, test := range map[string]struct {
		data string
		want int
		err  string
	}{
		"values":              {"first-value\r\n\nsecond value\n", 2, ""},
		"a key":               {string(key), 1, ""},
		"a short value":       {"first-value\nshort\n", 0, "line 2"},
		"nothing":             {"\n\n", 0, "no value"},
		"two blocks":          {string(key) + string(key), 0, "more than one"},
		"a value with spaces": {" leading-space\n", 1, ""},
	} {
		secrets, err := secretscan.ParseSecrets([]byte(test.data))
		if len(secrets) != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %d values, %v", name, len(secrets), err)
		}
		if err != nil && strings.Contains(err.Error(), "short\n") {
			t.Errorf("%s: the error shows the value", name)
		}
	}
	if _, err := secretscan.New(secretscan.DefaultLimits, []byte("short")); err == nil {
		t.Error("a value of five bytes was taken")
	}
	der, _ := pem.Decode(key)
	s, err := secretscan.New(secretscan.DefaultLimits, der.Bytes)
	must(t, err)
	findings, err := s.Scan("x", bytes.NewReader(key))
	must(t, err)
	if !kinds(findings)[secretscan.KnownSecret] {
		t.Errorf("a given key is not recognised in its PEM form: %v", findings)
	}
}

func TestFindingsOfOneFileAreBounded(t *testing.T) {
	findings := scan(t, []byte(strings.Repeat("postgres://shop:hunter22@db/shop\n", 1_000)))
	if len(findings) != 25 {
		t.Errorf("%d findings", len(findings))
	}
}
