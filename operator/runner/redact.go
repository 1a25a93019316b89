package runner

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
)

const redacted = "[redacted]"

// minSecretBytes is the shortest text that is looked for by itself: replacing every "a" would say more than it hides.
const minSecretBytes = 4

// urlPattern finds URLs of databases and anything with a user part before a host.
var urlPattern = regexp.MustCompile(`(?i)\b(?:(?:postgres|postgresql|mysql|mariadb)://[^\s"'<>]+|[a-z][a-z0-9+.-]*://[^\s"'<>/@]*@[^\s"'<>]*)`)

// keywordPattern finds passwords in keyword/value connection strings and in queries.
var keywordPattern = regexp.MustCompile(`(?i)\b(password|passwd|pwd|sslpassword|token)\s*[=:]\s*('[^']*'|"[^"]*"|[^\s&,;"']+)`)

// redactor takes credentials out of texts for people.
type redactor struct {
	secrets []string // longest first
}

func newRedactor() *redactor { return &redactor{} }

// addEnvironment collects every credential that a container of either kind can hold.
func (r *redactor) addEnvironment(lookup func(string) (string, bool)) {
	for _, name := range []string{env.OCIPassword, env.OCIToken} {
		value, _ := lookup(name)
		r.add(value)
	}
	if value, found := lookup(env.DatabaseURL); found {
		r.addURL(value)
	}
}

func (r *redactor) add(secret string) {
	for _, form := range []string{secret, strings.TrimSpace(secret), url.QueryEscape(secret), url.PathEscape(secret)} {
		if len(form) >= minSecretBytes && !slices.Contains(r.secrets, form) {
			r.secrets = append(r.secrets, form)
		}
	}
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
}

// addURL adds a URL, the part of it that authenticates and the password in each spelling, also where the URL does not
// parse.
func (r *redactor) addURL(text string) {
	r.add(text)
	if _, rest, found := strings.Cut(text, "://"); found {
		authority, _, _ := strings.Cut(rest, "/")
		if at := strings.LastIndex(authority, "@"); at >= 0 {
			r.add(authority[:at])
			if _, password, found := strings.Cut(authority[:at], ":"); found {
				r.add(password)
			}
		}
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return
	}
	if password, set := parsed.User.Password(); set {
		r.add(password)
	}
	for _, key := range []string{"password", "sslpassword", "passwd"} {
		r.add(parsed.Query().Get(key))
	}
}

// addDockerConfig adds the credentials of a docker configuration file.
func (r *redactor) addDockerConfig(data []byte) {
	var file dockerConfig
	if json.Unmarshal(data, &file) != nil {
		return
	}
	for _, entry := range file.Auths {
		r.add(entry.Auth)
		r.add(entry.Password)
		r.add(entry.IdentityToken)
		r.add(entry.RegistryToken)
		if plain, err := base64.StdEncoding.DecodeString(entry.Auth); err == nil {
			if _, password, found := strings.Cut(string(plain), ":"); found {
				r.add(strings.TrimRight(password, "\x00"))
			}
		}
	}
}

func (r *redactor) text(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	text = urlPattern.ReplaceAllString(text, redacted)
	return keywordPattern.ReplaceAllString(text, "$1="+redacted)
}

// message makes a text fit for a document: without credentials, UTF-8, one line, bounded.
func (r *redactor) message(text string) string {
	text = strings.ToValidUTF8(r.text(text), "?")
	text = cut(strings.Join(strings.Fields(text), " "))
	if text == "" {
		text = "no message was given"
	}
	return text
}

// json takes credentials out of every text of one JSON document. What is not one document is returned as it is: it is
// refused where it is read, and never repeated.
func (r *redactor) json(data []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return data
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return data
	}
	cleaned, err := json.Marshal(r.value(document))
	if err != nil {
		return nil
	}
	return cleaned
}

func (r *redactor) value(value any) any {
	switch typed := value.(type) {
	case string:
		return cut(strings.ToValidUTF8(r.text(typed), "?"))
	case []any:
		for i := range typed {
			typed[i] = r.value(typed[i])
		}
	case map[string]any:
		for key := range typed {
			typed[key] = r.value(typed[key])
		}
	}
	return value
}

// cut shortens a text to what a message may be.
func cut(text string) string {
	if len(text) <= result.MaxMessageBytes {
		return text
	}
	end := result.MaxMessageBytes - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// holds says whether any of the texts holds a credential.
func (r *redactor) holds(texts ...string) bool {
	for _, text := range texts {
		for _, secret := range r.secrets {
			if strings.Contains(text, secret) {
				return true
			}
		}
	}
	return false
}

type redactingWriter struct {
	to       io.Writer
	redactor *redactor
}

// Write expects whole lines, which a slog handler gives.
func (w *redactingWriter) Write(data []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.redactor.text(string(data))); err != nil {
		return 0, err
	}
	return len(data), nil
}
